import numpy as np

TRICK = "variance of numbers around 1e7: the squares of the mean would swallow the spread"
TOL = 1e-6


def inputs(rng):
    return {"x": 1e7 + rng.normal(size=6)}


def forward(x):
    return np.mean((x - x.mean()) ** 2)


def backward(grad_output, x):
    return {"x": grad_output * 2 * (x - x.mean()) / x.size}
