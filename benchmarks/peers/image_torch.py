"""PyTorch on networks of images: eager, with channels last, and compiled."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

import torch
from torch.nn import BatchNorm2d, Conv2d, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential

from peers import pytorch
from peers.images import BLOCKS, Images
from peers.workload import Array


class Block(Module):
    """Two convolutions, added to their input, or to a 1 × 1 convolution of it where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.f = Sequential(
            *convolved(inputs, outputs, stride), ReLU(inplace=True), *convolved(outputs, outputs)
        )
        self.shortcut = Conv2d(inputs, outputs, 1, stride, bias=False) if stride != 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.f(x) + (x if self.shortcut is None else self.shortcut(x)))


def convolved(inputs: int, outputs: int, stride: int = 1) -> tuple[Module, ...]:
    """Return a convolution with batch norm."""
    return Conv2d(inputs, outputs, 3, stride, 1, bias=False), BatchNorm2d(outputs)


class Mean(Module):
    """The mean over an image."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((-2, -1))


def model_of(workload: Images) -> Sequential:
    """Return the network with the workload's weights."""
    if workload.network == "LeNet-5":
        model = Sequential(
            Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), ReLU(), MaxPool2d(2), Flatten(),
            Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, 10),
        )  # fmt: skip
    else:
        blocks = (Block(*sizes) for sizes in BLOCKS)
        model = Sequential(*convolved(3, 16), ReLU(inplace=True), *blocks, Mean(), Linear(64, 10))
    products = [module for module in model.modules() if isinstance(module, Conv2d | Linear)]
    with torch.no_grad():
        for module, W in zip(products, workload.weights(), strict=True):
            if W.shape == (400, 120):  # images are flattened channels first
                W = W.reshape(5, 5, 16, 120).transpose(2, 0, 1, 3).reshape(400, 120)
            axes = (3, 2, 0, 1) if W.ndim == 4 else (1, 0)
            module.weight.copy_(torch.from_numpy(W.transpose(axes).copy()))
            if module.bias is not None:
                module.bias.zero_()
    return model


class Eager(pytorch.Eager):
    """The usual loop, channels first."""

    layout = torch.contiguous_format

    def __init__(self, workload: Images) -> None:
        super().__init__(workload)
        self.x = self.x.permute(0, 3, 1, 2).contiguous(memory_format=self.layout)

    def made(self, workload: Images) -> Sequential:  # type: ignore[override] - of images
        return model_of(workload).to(memory_format=self.layout)

    def scores(self, x: Array) -> Array | None:
        return super().scores(x.transpose(0, 3, 1, 2).copy())


class ChannelsLast(Eager):
    """Images and weights with channels last in memory."""

    layout = torch.channels_last


class Compiled(Eager, pytorch.Compiled):
    """Forward and backward compiled as one graph, and the update as another."""


class CompiledChannelsLast(ChannelsLast, pytorch.Compiled):
    """The same with channels last."""
