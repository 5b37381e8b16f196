import numpy as np

TRICK = "a batch without examples: the weight's gradient is a sum over nothing"


def inputs(rng):
    return {"x": np.empty((0, 3)), "W": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}


def forward(x, W, b):
    return x @ W + b


def backward(grad_output, x, W, b):
    return {"x": grad_output @ W.T, "W": x.T @ grad_output, "b": grad_output.sum(axis=0)}
