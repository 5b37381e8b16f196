"""Causal attention: the mask is forgotten on the way back, where it is not zero by itself."""

import numpy as np


def inputs(rng):
    return {"s": rng.normal(size=(4, 4))}


def forward(s):
    return np.tril(s) @ np.ones((4, 1)) + np.tanh(np.tril(s)).sum(axis=1, keepdims=True)


def backward(grad_output, s):
    d = grad_output @ np.ones((1, 4)) + grad_output * (1 - np.tanh(np.tril(s)) ** 2)
    return {"s": d}


def backward_fixed(grad_output, s):
    d = grad_output @ np.ones((1, 4)) + grad_output * (1 - np.tanh(np.tril(s)) ** 2)
    return {"s": np.tril(d)}
