import numpy as np  # noqa: F401

TRICK = "row maxima with ties, the gradient split evenly among the winners"


def inputs(rng):
    x = rng.integers(0, 3, size=(5, 6)).astype(float)
    x[0] = 2.0
    return {"x": x}


def forward(x):
    return x.max(axis=1)


def backward(grad_output, x):
    hit = x == x.max(axis=1, keepdims=True)
    return {"x": grad_output[:, None] * hit / hit.sum(axis=1, keepdims=True)}
