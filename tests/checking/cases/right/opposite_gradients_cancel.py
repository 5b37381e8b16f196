import numpy as np  # noqa: F401

TRICK = "x enters twice with opposite signs: the two contributions cancel to rounding noise"


def inputs(rng):
    return {"x": rng.normal(size=6), "y": rng.normal(size=6)}


def forward(x, y):
    return (x + y) - x


def backward(grad_output, x, y):
    dx = grad_output.copy()
    dx -= grad_output
    return {"x": dx, "y": grad_output.copy()}
