"""Batch normalisation's shift and scale: the gradient of the scale forgets the normalised input."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "gamma": rng.uniform(0.5, 2, size=3), "beta": rng.normal(size=3)}


def forward(x, gamma, beta):
    centred = x - x.mean(axis=0)
    return gamma * centred / np.sqrt((centred**2).mean(axis=0) + 1e-5) + beta


def backward(grad_output, x, gamma, beta):
    centred = x - x.mean(axis=0)
    r = 1 / np.sqrt((centred**2).mean(axis=0) + 1e-5)
    xh = centred * r
    gh = grad_output * gamma
    dx = r * (gh - gh.mean(axis=0) - xh * (gh * xh).mean(axis=0))
    return {"x": dx, "gamma": grad_output.sum(axis=0), "beta": grad_output.sum(axis=0)}


def backward_fixed(grad_output, x, gamma, beta):
    centred = x - x.mean(axis=0)
    r = 1 / np.sqrt((centred**2).mean(axis=0) + 1e-5)
    xh = centred * r
    gh = grad_output * gamma
    dx = r * (gh - gh.mean(axis=0) - xh * (gh * xh).mean(axis=0))
    return {"x": dx, "gamma": (grad_output * xh).sum(axis=0), "beta": grad_output.sum(axis=0)}
