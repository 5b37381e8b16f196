"""Batch normalisation without the paths through mean and variance."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(6, 3)), "gamma": rng.uniform(0.5, 2, size=3)}


def normalised(x):
    mu = x.mean(axis=0)
    r = 1 / np.sqrt(((x - mu) ** 2).mean(axis=0) + 1e-5)
    return (x - mu) * r, r


def forward(x, gamma):
    return gamma * normalised(x)[0]


def backward(grad_output, x, gamma):
    xh, r = normalised(x)
    return {"x": grad_output * gamma * r, "gamma": (grad_output * xh).sum(axis=0)}


def backward_fixed(grad_output, x, gamma):
    xh, r = normalised(x)
    gh = grad_output * gamma
    dx = r * (gh - gh.mean(axis=0) - xh * (gh * xh).mean(axis=0))
    return {"x": dx, "gamma": (grad_output * xh).sum(axis=0)}
