"""Average pooling hands the whole gradient to every entry of a window."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 6))}


def forward(x):
    return x.reshape(2, 2, 3, 2).mean(axis=(1, 3))


def backward(grad_output, x):
    return {"x": np.repeat(np.repeat(grad_output, 2, axis=0), 2, axis=1)}


def backward_fixed(grad_output, x):
    return {"x": np.repeat(np.repeat(grad_output, 2, axis=0), 2, axis=1) / 4}
