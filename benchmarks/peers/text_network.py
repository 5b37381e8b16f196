"""handgrad's compiled engine on the character GPT, and its products alone."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from handgrad import (
    GELU,
    AdamW,
    Embedding,
    LayerNorm,
    Linear,
    Network,
    Positions,
    Repeat,
    Residual,
    SelfAttention,
    SoftmaxCrossEntropy,
)
from handgrad.layers import Optimiser
from peers import ours, products
from peers.texts import CLIP_NORM, WEIGHT_DECAY, Texts


class Compiled(ours.Compiled):
    """The compiled engine."""

    def made(self, workload: Texts) -> Network:  # type: ignore[override] - of texts
        d = workload.width
        network = Network(
            Embedding(workload.characters, d),
            Positions(),
            Repeat(
                Residual(LayerNorm(), SelfAttention(d, workload.heads, causal=True)),
                Residual(LayerNorm(), Linear(d, 4 * d), GELU("tanh"), Linear(4 * d, d)),
                times=workload.layers,
            ),
            LayerNorm(),
            Linear(d, workload.characters),
            loss=SoftmaxCrossEntropy(),
            inputs=workload.context,
        )
        for name, table in zip(("E1", "P2"), workload.tables(), strict=True):
            network.arrays[name][...] = table
        return network

    def optimiser(self, workload: Texts) -> Optimiser:  # type: ignore[override] - of texts
        return AdamW(workload.rate, weight_decay=WEIGHT_DECAY, clip_norm=CLIP_NORM)


class OneThread(products.OneThread, Compiled):
    """Products of matrices, on one thread."""


class Divided(products.Divided, Compiled):
    """Products of matrices, divided as the engine divides them."""
