import numpy as np

TRICK = "a batch of one example with one feature: mean, sum, transpose and shape all coincide"


def inputs(rng):
    return {"x": rng.normal(size=(1, 1)), "w": rng.normal(size=(1, 1)), "b": rng.normal(size=1)}


def forward(x, w, b):
    return np.sin(x @ w + b)


def backward(grad_output, x, w, b):
    d = grad_output * np.cos(x @ w + b)
    return {"x": d @ w.T, "w": x.T @ d, "b": d.sum(axis=0)}
