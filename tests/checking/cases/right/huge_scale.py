import numpy as np  # noqa: F401

TRICK = "numbers of 1e150: an absolute step vanishes in rounding, and squares come near overflow"


def inputs(rng):
    return {"x": 1e150 * rng.normal(size=5), "y": 1e-150 * rng.normal(size=5)}


def forward(x, y):
    return x * y + x**2 * 1e-300


def backward(grad_output, x, y):
    return {"x": grad_output * (y + 2e-300 * x), "y": grad_output * x}
