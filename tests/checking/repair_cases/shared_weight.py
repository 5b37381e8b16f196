"""One weight matrix used twice gets the gradient of its second use only."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": 0.5 * rng.normal(size=(3, 3))}


def forward(x, W):
    return np.tanh(x @ W) @ W


def backward(grad_output, x, W):
    h = np.tanh(x @ W)
    dW = h.T @ grad_output
    dz = grad_output @ W.T * (1 - h**2)
    dW = x.T @ dz
    return {"x": dz @ W.T, "W": dW}


def backward_fixed(grad_output, x, W):
    h = np.tanh(x @ W)
    dz = grad_output @ W.T * (1 - h**2)
    return {"x": dz @ W.T, "W": h.T @ grad_output + x.T @ dz}
