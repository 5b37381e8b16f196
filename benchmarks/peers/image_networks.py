"""handgrad's compiled engine on networks of images, and its products alone."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

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
    Residual,
    SoftmaxCrossEntropy,
)  # fmt: skip
from peers import ours, products
from peers.images import BLOCKS, Images


def block(inputs: int, outputs: int, stride: int) -> tuple[Layer, Layer]:
    """Return two convolutions added to their input, or to a 1 × 1 convolution of it where the shape changes; and ReLU."""
    return Residual(
        *_convolved(inputs, outputs, stride),
        ReLU(),
        *_convolved(outputs, outputs),
        shortcut=Conv2d(inputs, outputs, 1, stride=stride, bias=False) if stride != 1 else None,
    ), ReLU()


def _convolved(inputs: int, outputs: int, stride: int = 1) -> tuple[Layer, ...]:
    return Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), BatchNorm()


def layers(network: str) -> list[Layer]:
    """Return LeNet-5 or ResNet-8."""
    if network == "LeNet-5":
        return [
            Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), ReLU(), MaxPool2d(2), Flatten(),
            Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, 10),
        ]  # fmt: skip
    blocks = (layer for sizes in BLOCKS for layer in block(*sizes))
    return [*_convolved(3, 16), ReLU(), *blocks, GlobalAvgPool2d(), Linear(64, 10)]


class Compiled(ours.Compiled):
    """The compiled engine."""

    def made(self, workload: Images) -> Network:  # type: ignore[override] - of images
        return Network(*layers(workload.network), loss=SoftmaxCrossEntropy(), inputs=workload.image)


class OneThread(products.OneThread, Compiled):
    """Convolutions and other products, on one thread."""


class Divided(products.Divided, Compiled):
    """Convolutions and other products, divided as the engine divides them."""
