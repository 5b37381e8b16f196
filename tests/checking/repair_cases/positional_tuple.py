"""Functions that take and return by position: gradients in the wrong order."""

import numpy as np


def inputs(rng):
    return {"a": rng.normal(size=(3, 4)), "w": rng.normal(size=(3, 4))}


def forward(a, w, /):
    return np.sin(a) * w


def backward(grad_output, a, w, /):
    da = grad_output * np.cos(a) * w
    dw = grad_output * np.sin(a)
    return dw, da


def backward_fixed(grad_output, a, w, /):
    return grad_output * np.cos(a) * w, grad_output * np.sin(a)
