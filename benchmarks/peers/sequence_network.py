"""handgrad's compiled engine on an LSTM, and its products alone."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from handgrad import LSTM, Last, Linear, Network, SoftmaxCrossEntropy
from peers import ours, products
from peers.sequences import Sequences


class Compiled(ours.Compiled):
    """The compiled engine."""

    def made(self, workload: Sequences) -> Network:  # type: ignore[override] - of sequences
        network = Network(
            LSTM(workload.features, workload.width),
            Last(),
            Linear(workload.width, workload.classes),
            loss=SoftmaxCrossEntropy(),
            inputs=(workload.times, workload.features),
        )
        network.arrays["U1"][...] = workload.recurrent()
        return network


class OneThread(products.OneThread, Compiled):
    """Products of matrices, on one thread."""


class Divided(products.Divided, Compiled):
    """Products of matrices, divided as the engine divides them."""
