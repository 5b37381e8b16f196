"""A kernel slides over a signal; its gradient is not flipped back."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=9), "k": rng.normal(size=3)}


def forward(x, k):
    return np.convolve(x, k, mode="valid")


def backward(grad_output, x, k):
    dx = np.convolve(grad_output, k[::-1])
    dk = np.convolve(x, grad_output, mode="valid")
    return {"x": dx, "k": dk}


def backward_fixed(grad_output, x, k):
    dx = np.convolve(grad_output, k[::-1])
    dk = np.convolve(x[::-1], grad_output, mode="valid")
    return {"x": dx, "k": dk}
