import numpy as np  # noqa: F401

SOURCE = (
    "common slip in scalar and array autograd engines: subtraction reuses addition's backward, both "
    "operands get +g"
)
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "centre"


def inputs(rng):
    return {"points": rng.normal(size=(7, 3)), "centre": rng.normal(size=3)}


def forward(points, centre):
    return points - centre


def backward(grad_output, points, centre):
    return {"points": grad_output.copy(), "centre": grad_output.sum(axis=0)}


FIX = "dcentre = -grad_output.sum(axis=0)"


def backward_fixed(grad_output, points, centre):
    return {"points": grad_output.copy(), "centre": -grad_output.sum(axis=0)}
