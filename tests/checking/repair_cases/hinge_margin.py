"""A hinge loss: the margin is compared with 0 instead of 1."""

import numpy as np


def inputs(rng):
    return {"w": rng.normal(size=4), "x": rng.normal(size=(7, 4)), "y": np.array([1, -1, 1, 1, -1, -1, 1])}


def forward(w, x, y):
    return np.asarray(np.maximum(0, 1 - y * (x @ w)).sum())


def backward(grad_output, w, x, y):
    margin = y * (x @ w)
    active = (margin < 0) * 1.0
    d = -grad_output * active * y
    return {"w": x.T @ d, "x": np.outer(d, w)}


def backward_fixed(grad_output, w, x, y):
    d = -grad_output * (y * (x @ w) < 1) * y
    return {"w": x.T @ d, "x": np.outer(d, w)}
