"""Mean squared error: divided by the rows and not by the entries, in two places."""

import numpy as np


def inputs(rng):
    return {"pred": rng.normal(size=(5, 3)), "target": rng.normal(size=(5, 3))}


def forward(pred, target):
    return np.asarray(((pred - target) ** 2).mean())


def backward(grad_output, pred, target):
    n = pred.shape[0]
    return {"pred": grad_output * 2 * (pred - target) / n, "target": grad_output * 2 * (target - pred) / n}


def backward_fixed(grad_output, pred, target):
    n = pred.size
    return {"pred": grad_output * 2 * (pred - target) / n, "target": grad_output * 2 * (target - pred) / n}
