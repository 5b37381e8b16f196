import numpy as np

TRICK = "relu at exact zeros with the slope 1 there, as clip(x, 0, None) gives it in some libraries"


def inputs(rng):
    return {"x": np.array([[0.0, 1.5, -2.0, 0.0], [-0.0, 3.0, 0.0, -1.0]]), "b": np.zeros(4)}


def forward(x, b):
    return np.clip(x + b, 0, None)


def backward(grad_output, x, b):
    dx = np.where(x + b >= 0, grad_output, 0.0)
    return {"x": dx, "b": dx.sum(axis=0)}
