import numpy as np

TRICK = "two names get the same array, a third a view of it"


def inputs(rng):
    return {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=(2, 3)), "c": rng.normal(size=(3, 2))}


def forward(a, b, c):
    return np.exp(a + b + c.T)


def backward(grad_output, a, b, c):
    d = grad_output * np.exp(a + b + c.T)
    return {"a": d, "b": d, "c": d.T}
