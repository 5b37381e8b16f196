import numpy as np  # noqa: F401

SOURCE = (
    "min-max scaling: the backward divides by the range and forgets that minimum and maximum move with "
    "the data"
)
EXPECT = "missing-term"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=6)}


def forward(x):
    return (x - x.min()) / (x.max() - x.min())


def backward(grad_output, x):
    return {"x": grad_output / (x.max() - x.min())}


FIX = "add what flows through x.min() and x.max() to the extremes"


def backward_fixed(grad_output, x):
    lo, span = x.argmin(), x.max() - x.min()
    y = (x - x.min()) / span
    d = grad_output / span
    d[lo] -= (grad_output * (1 - y)).sum() / span
    d[x.argmax()] -= (grad_output * y).sum() / span
    return {"x": d}
