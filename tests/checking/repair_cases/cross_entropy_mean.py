"""Softmax cross-entropy: the mean over the rows is forgotten."""

import numpy as np


def inputs(rng):
    labels = np.array([0, 3, 1, 1, 2])
    return {
        "x": rng.normal(size=(5, 3)),
        "W": rng.normal(size=(3, 4)),
        "b": rng.normal(size=4),
        "labels": labels,
    }


def probabilities(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(x, W, b, labels):
    p = probabilities(x @ W + b)
    return -np.log(p[np.arange(len(labels)), labels]).mean()


def backward(grad_output, x, W, b, labels):
    d = probabilities(x @ W + b)
    d[np.arange(len(labels)), labels] -= 1
    d *= grad_output
    return {"x": d @ W.T, "W": x.T @ d, "b": d.sum(axis=0)}


def backward_fixed(grad_output, x, W, b, labels):
    d = probabilities(x @ W + b)
    d[np.arange(len(labels)), labels] -= 1
    d *= grad_output / len(labels)
    return {"x": d @ W.T, "W": x.T @ d, "b": d.sum(axis=0)}
