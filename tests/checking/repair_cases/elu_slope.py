"""ELU: the slope of the left half is taken from the output as if it were the input."""

import numpy as np

ALPHA = 0.7


def inputs(rng):
    return {"x": rng.normal(size=(4, 5))}


def forward(x):
    return np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0)))


def backward(grad_output, x):
    out = forward(x)
    return {"x": grad_output * np.where(x > 0, 1.0, ALPHA * np.exp(out))}


def backward_fixed(grad_output, x):
    out = forward(x)
    return {"x": grad_output * np.where(x > 0, 1.0, out + ALPHA)}
