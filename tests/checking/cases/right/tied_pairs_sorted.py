import numpy as np

TRICK = "sorting with pairs of equal values: either of the two may be said to have moved"


def inputs(rng):
    x = rng.permutation(8).astype(float)
    x[x == 3] = 2.0
    x[x == 7] = 6.0
    return {"x": x, "w": rng.normal(size=8)}


def forward(x, w):
    return np.sort(x) * w


def backward(grad_output, x, w):
    order = np.argsort(x, kind="stable")
    dx = np.zeros_like(x)
    dx[order] = grad_output * w
    return {"x": dx, "w": grad_output * x[order]}
