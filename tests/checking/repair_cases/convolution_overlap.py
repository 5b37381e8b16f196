"""A convolution of one dimension: windows that overlap overwrite each other's gradient."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=8), "w": rng.normal(size=3)}


def forward(x, w):
    return np.array([x[i : i + 3] @ w for i in range(len(x) - 2)])


def backward(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(grad_output)):
        dx[i : i + 3] = grad_output[i] * w
        dw += grad_output[i] * x[i : i + 3]
    return {"x": dx, "w": dw}


def backward_fixed(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(grad_output)):
        dx[i : i + 3] += grad_output[i] * w
        dw += grad_output[i] * x[i : i + 3]
    return {"x": dx, "w": dw}
