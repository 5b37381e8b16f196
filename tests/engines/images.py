"""Networks of images and sequences, small ones, with every kind of window."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from handgrad import (
    AvgPool2d,
    BatchNorm,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    GlobalAvgPool2d,
    Layer,
    Linear,
    MaxPool2d,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    SeparableConv2d,
    Tanh,
)

from .agreement import ROWS, Case

OUTPUTS = 3


def case(shape: tuple[int, ...], layers: Callable[[], list[Layer]], *, whole: bool = False) -> Case:
    """Return a case of rows of a shape; of ``whole`` numbers many are equal, and so are their sums over channels."""
    rng = np.random.default_rng(7)
    x = rng.integers(-2, 3, (ROWS, *shape)) * 1.0 if whole else rng.normal(size=(ROWS, *shape))

    def network(dtype: str) -> Network:
        body = [*layers(), Flatten()]
        width = Network(*body, inputs=shape).output_shape[-1]
        last = Linear(int(width), OUTPUTS)
        return Network(*body, last, loss=MeanSquaredError(), inputs=shape, dtype=dtype)

    return Case(network, {"x": x, "t": rng.normal(size=(ROWS, OUTPUTS))}, rate=0.01)


IMAGES: dict[str, Case] = {
    "LeNet": case(
        (14, 13, 1),
        lambda: [
            Conv2d(1, 6, 5, padding=2), ReLU(), MaxPool2d(2), Conv2d(6, 17, (5, 4)), Tanh(), Flatten(), Linear(153, 7),
        ],
    ),
    "separable": case(
        (8, 9, 3),
        lambda: [SeparableConv2d(3, 7, (3, 2), padding=1), ReLU(), SeparableConv2d(7, 5, 3, stride=2, dilation=2)],
    ),
    "ResNet": case(
        (8, 9, 3),
        lambda: [
            Conv2d(3, 16, 3, padding=1, bias=False), BatchNorm(), ReLU(),
            Residual(Conv2d(16, 16, 3, padding=1, bias=False), BatchNorm(), Tanh(), Conv2d(16, 16, 1)),
            Conv2d(16, 20, 3, stride=2, padding=1), ReLU(), GlobalAvgPool2d(),
        ],
    ),
    "strides and dilation": case(
        (11, 13, 2),
        lambda: [
            Conv2d(2, 5, (2, 3), stride=3, padding=2), Tanh(), Conv2d(5, 4, 2, dilation=2, bias=False), Tanh(),
            Conv2d(4, 7, 2, stride=2, padding=1, dilation=3),
        ],
    ),
    "windows apart": case((9, 8, 3), lambda: [Conv2d(3, 4, 2, bias=False), Conv2d(4, 5, 1, stride=3), Tanh()]),
    "many channels": case((4, 5, 33), lambda: [Conv2d(33, 37, 3, padding=1), Tanh(), Conv2d(37, 5, 2)]),
    "blocks of channels": case(
        (4, 5, 2), lambda: [Conv2d(2, 64, 1), Tanh(), Conv2d(64, 96, 3, padding=1), Tanh(), Conv2d(96, 64, 3)]
    ),
    "depthwise": case(
        (8, 9, 3),
        lambda: [
            Conv2d(3, 19, 1), Tanh(), Conv2d(19, 19, (3, 2), groups=19, stride=2, padding=1), Tanh(),
            Conv2d(19, 19, (5, 4), groups=19, padding=2, bias=False),
        ],
    ),
    "groups": case(
        (7, 8, 6),
        lambda: [
            Conv2d(6, 15, (3, 2), groups=3, stride=2, padding=1), Tanh(), Conv2d(15, 30, 3, groups=15, padding=1),
            Tanh(), Conv2d(30, 20, 1, groups=5, bias=False), Tanh(), ConvTranspose2d(20, 6, 3, stride=2, groups=2),
            ConvTranspose2d(6, 6, 2, groups=6, bias=False),
        ],
    ),
    "large groups": case(
        (5, 4, 128), lambda: [Conv2d(128, 128, 3, padding=1, groups=2), Tanh(), Conv2d(128, 64, 2, groups=2)]
    ),
    "groups of a sequence": case(
        (17, 4), lambda: [Conv1d(4, 6, 3, groups=2, padding=1), Tanh(), Conv1d(6, 6, 4, groups=6, stride=2, bias=False)]
    ),
    "transposed": case(
        (4, 5, 3),
        lambda: [ConvTranspose2d(3, 6, 4, stride=2, padding=1), Tanh(), ConvTranspose2d(6, 2, (3, 2), dilation=2)],
    ),
    "a sequence": case(
        (19, 3),
        lambda: [Conv1d(3, 5, 4, stride=2, padding=2), Tanh(), Conv1d(5, 18, 2, dilation=3), ReLU()],
    ),
    "pools that overlap": case(
        (7, 9, 5),
        lambda: [
            Conv2d(5, 4, 1, initialiser="ones"), MaxPool2d((3, 2), stride=2, padding=1),
            AvgPool2d(3, stride=1, padding=1),
        ],
        whole=True,
    ),
    "pools after a convolution": case(
        (9, 8, 2),
        lambda: [Conv2d(2, 19, 2, bias=False), AvgPool2d(2), MaxPool2d(2, stride=1), Tanh()],
    ),
    "a pool of many places": case(
        (11, 9, 3), lambda: [Conv2d(3, 5, 1, initialiser="ones"), MaxPool2d((6, 5), stride=3, padding=1)], whole=True
    ),
}  # fmt: skip
