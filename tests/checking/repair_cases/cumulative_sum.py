"""A running sum: its gradient runs the same way instead of backwards."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(3, 5))}


def forward(x):
    return np.cumsum(x, axis=1)


def backward(grad_output, x):
    return {"x": np.cumsum(grad_output, axis=1)}


def backward_fixed(grad_output, x):
    return {"x": np.cumsum(grad_output[:, ::-1], axis=1)[:, ::-1]}
