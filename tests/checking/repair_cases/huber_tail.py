"""Huber's loss: the tail's slope is the residual's sign without delta."""

import numpy as np

DELTA = 0.6


def inputs(rng):
    return {"pred": rng.normal(size=(4, 3)), "target": rng.normal(size=(4, 3))}


def forward(pred, target):
    r = pred - target
    small = np.abs(r) <= DELTA
    return np.asarray(np.where(small, 0.5 * r**2, DELTA * (np.abs(r) - 0.5 * DELTA)).sum())


def backward(grad_output, pred, target):
    r = pred - target
    d = np.where(np.abs(r) <= DELTA, r, np.sign(r)) * grad_output
    return {"pred": d, "target": -d}


def backward_fixed(grad_output, pred, target):
    r = pred - target
    d = np.where(np.abs(r) <= DELTA, r, DELTA * np.sign(r)) * grad_output
    return {"pred": d, "target": -d}
