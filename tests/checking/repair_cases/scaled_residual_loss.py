"""Weighted squares: the weights are forgotten, and so is the upstream gradient."""

import numpy as np


def inputs(rng):
    weight = rng.uniform(0.2, 2, size=5)
    return {
        "x": rng.normal(size=(5, 3)),
        "theta": rng.normal(size=3),
        "y": rng.normal(size=5),
        "weight": weight,
    }


def forward(x, theta, y, weight):
    return np.asarray((weight * (x @ theta - y) ** 2).sum())


def backward(grad_output, x, theta, y, weight):
    residual = x @ theta - y
    return {"theta": 2 * x.T @ residual}


def backward_fixed(grad_output, x, theta, y, weight):
    residual = x @ theta - y
    return {"theta": 2 * grad_output * x.T @ (weight * residual)}
