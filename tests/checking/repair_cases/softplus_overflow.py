"""Softplus of large numbers: exp(x) / (1 + exp(x)) overflows."""

import numpy as np


def inputs(rng):
    return {"x": np.array([-900.0, -3.0, 0.5, 12.0, 800.0]) + rng.normal(size=5)}


def forward(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def backward(grad_output, x):
    with np.errstate(all="ignore"):
        return {"x": grad_output * np.exp(x) / (1 + np.exp(x))}


def backward_fixed(grad_output, x):
    e = np.exp(-np.abs(x))
    return {"x": grad_output * np.where(x >= 0, 1 / (1 + e), e / (1 + e))}
