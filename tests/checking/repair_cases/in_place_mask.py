"""A leaky rectifier that writes the slope into the gradient it was given."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 5))}


def forward(x):
    return np.where(x > 0, x, 0.1 * x)


def backward(grad_output, x):
    d = grad_output
    d[x <= 0] *= 0.1
    return {"x": d}


def backward_fixed(grad_output, x):
    d = grad_output.copy()
    d[x <= 0] *= 0.1
    return {"x": d}
