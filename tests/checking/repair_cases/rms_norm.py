"""RMS normalisation: the path through the mean square is left out."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 5)), "gain": rng.uniform(0.5, 2, size=5)}


def forward(x, gain):
    r = 1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)
    return x * r * gain


def backward(grad_output, x, gain):
    r = 1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)
    gh = grad_output * gain
    return {"x": r * gh, "gain": (grad_output * x * r).sum(axis=0)}


def backward_fixed(grad_output, x, gain):
    r = 1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)
    gh = grad_output * gain
    dx = r * gh - x * r**3 * (gh * x).mean(axis=-1, keepdims=True)
    return {"x": dx, "gain": (grad_output * x * r).sum(axis=0)}
