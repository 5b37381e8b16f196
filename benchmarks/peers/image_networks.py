"""handgrad's compiled engine on networks of images, and its products alone."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handgrad import (
    BatchNorm,
    Conv2d,
    Flatten,
    GlobalAvgPool2d,
    Layer,
    Linear,
    MaxPool2d,
    Network,
    ReLU,
    Sequential,
    SoftmaxCrossEntropy,
    rules,
)  # fmt: skip
from handgrad.layers import Graph, Value
from peers import ours, products
from peers.images import BLOCKS, Images
from peers.workload import Array


@dataclass(frozen=True, eq=False, repr=False)
class Block(Layer):
    """Two convolutions, added to their input, or to a 1 × 1 convolution of it where the shape changes."""

    inputs: int
    outputs: int
    stride: int

    def connect(self, graph: Graph, x: Value) -> Value:
        h = Sequential(
            *_convolved(self.inputs, self.outputs, self.stride),
            ReLU(),
            *_convolved(self.outputs, self.outputs),
        ).connect(graph, x)
        if self.stride != 1:
            x = Conv2d(self.inputs, self.outputs, 1, stride=self.stride, bias=False).connect(graph, x)
        return ReLU().connect(graph, graph.apply(rules.add, x, h))


def _convolved(inputs: int, outputs: int, stride: int = 1) -> tuple[Layer, ...]:
    return Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), BatchNorm()


def layers(network: str) -> list[Layer]:
    """Return LeNet-5 or ResNet-8."""
    if network == "LeNet-5":
        return [
            Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), ReLU(), MaxPool2d(2), Flatten(),
            Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, 10),
        ]  # fmt: skip
    return [
        *_convolved(3, 16), ReLU(), *(Block(*sizes) for sizes in BLOCKS), GlobalAvgPool2d(), Linear(64, 10),
    ]  # fmt: skip


class Compiled(ours.Compiled):
    """The compiled engine."""

    def made(self, workload: Images) -> Network:  # type: ignore[override] - of images
        return Network(*layers(workload.network), loss=SoftmaxCrossEntropy(), inputs=workload.image)

    def scores(self, x: Array) -> Array | None:
        batches = np.split(x, range(self.workload.batch, len(x), self.workload.batch))
        return np.concatenate([super(Compiled, self).scores(batch) for batch in batches])


class OneThread(products.OneThread, Compiled):
    """Convolutions and other products, on one thread."""


class Divided(products.Divided, Compiled):
    """Convolutions and other products, divided as the engine divides them."""
