"""Samples in columns: the bias is summed over the wrong axis, which a square shape allows."""

import numpy as np


def inputs(rng):
    return {"W": rng.normal(size=(4, 3)), "x": rng.normal(size=(3, 4)), "b": rng.normal(size=(4, 1))}


def forward(W, x, b):
    return np.tanh(W @ x + b)


def backward(grad_output, W, x, b):
    a = np.tanh(W @ x + b)
    dz = grad_output * (1 - a**2)
    dW = np.dot(dz, x.T)
    db = np.sum(dz, axis=0).reshape(b.shape)
    dx = np.dot(W.T, dz)
    return {"W": dW, "x": dx, "b": db}


def backward_fixed(grad_output, W, x, b):
    dz = grad_output * (1 - np.tanh(W @ x + b) ** 2)
    return {"W": dz @ x.T, "x": W.T @ dz, "b": dz.sum(axis=1, keepdims=True)}
