import numpy as np

TRICK = "sin(1000 x): a fixed step of 1e-4 or more steps over the period"


def inputs(rng):
    return {"x": rng.uniform(-3, 3, size=6), "a": rng.normal(size=6)}


def forward(x, a):
    return a * np.sin(1e3 * x)


def backward(grad_output, x, a):
    return {"x": grad_output * a * 1e3 * np.cos(1e3 * x), "a": grad_output * np.sin(1e3 * x)}
