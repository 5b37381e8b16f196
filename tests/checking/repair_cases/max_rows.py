"""The largest entry of each row: the gradient goes to the column of the smallest."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(5, 4))}


def forward(x):
    return x.max(axis=1)


def backward(grad_output, x):
    d = np.zeros_like(x)
    d[np.arange(len(x)), x.argmin(axis=1)] = grad_output
    return {"x": d}


def backward_fixed(grad_output, x):
    d = np.zeros_like(x)
    d[np.arange(len(x)), x.argmax(axis=1)] = grad_output
    return {"x": d}
