"""handgrad's engines."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from handgrad import SGD, Adam, BatchNorm, Dropout, Layer, Linear, Network, ReLU, SoftmaxCrossEntropy
from handgrad.engines import ENGINES, Epoch
from handgrad.layers import Optimiser
from peers.workload import Array, Workload


class Engine:
    """A network's program on one of the engines."""

    engine: ClassVar[str]

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.rows = dict(zip(("x", "t"), workload.data(), strict=True))
        self.network = self.made(workload)
        arrays = self.network.arrays
        for name, W in zip(
            (name for name in arrays if name.startswith("W")), workload.weights(), strict=True
        ):
            arrays[name][...] = W
        self.program = self.network.program(self.optimiser(workload)).keeping("total", "count")
        slots = {name: np.zeros(shape, np.float32) for name, shape in self.program.slots.items()}
        self.bound = ENGINES[self.engine]().bind(self.program, {**arrays, **slots})
        self.rates = np.full(workload.steps, workload.rate)
        self.generator = np.random.default_rng(0)
        self.step = 1

    def made(self, workload: Workload) -> Network:
        """Return the network."""
        return Network(*_layers(workload), loss=SoftmaxCrossEntropy())

    def optimiser(self, workload: Workload) -> Optimiser:
        """Return the optimiser."""
        return {"sgd": SGD, "adam": Adam}[workload.optimiser](workload.rate)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the engine says of itself."""
        return self.bound.facts

    def next_epoch(self, rates: Array) -> Epoch:
        """Return the rows in a new order."""
        order = self.generator.permutation(self.workload.rows)
        return Epoch(self.rows, order, self.workload.batch, rates, self.step)

    def epoch(self) -> None:
        self.bound.epoch(self.next_epoch(self.rates))
        self.step += self.workload.steps

    def scores(self, x: Array) -> Array | None:
        return np.log(np.maximum(self.network.predict(x), 1e-30))


class Compiled(Engine):
    """The compiled engine."""

    engine = "compiled"


class Reference(Engine):
    """The reference engine."""

    engine = "reference"


def _layers(workload: Workload) -> list[Layer]:
    layers: list[Layer] = []
    for inputs, outputs in pairwise(workload.sizes):
        layers.append(Linear(inputs, outputs))
        layers += [BatchNorm()] * workload.batch_norm + [ReLU()] + [Dropout(0.5)] * workload.dropout
    return layers[: len(layers) - 1 - workload.batch_norm - workload.dropout]
