"""The fifth notes: a linear layer with gradients as attributes, after lin_grad(x, w, b, y)."""

import numpy as np


class Value(np.ndarray):
    """An array with room for its gradient, .g"""


def value(array):
    return np.array(array, float).view(Value)


def lin(x, w, b):
    return (x @ w + b).view(Value)


def lin_grad(x, w, b, y):
    b.g = y.g.sum(axis=0)
    w.g = x.T @ y.g
    x.g = y.g * w.T
