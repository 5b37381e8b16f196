"""The Euclidean norm of rows: the square root's half is left, the square's two is not."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 3))}


def forward(x):
    return np.sqrt((x**2).sum(axis=1))


def backward(grad_output, x):
    return {"x": grad_output[:, None] * 0.5 * x / np.sqrt((x**2).sum(axis=1, keepdims=True))}


def backward_fixed(grad_output, x):
    return {"x": grad_output[:, None] * x / np.sqrt((x**2).sum(axis=1, keepdims=True))}
