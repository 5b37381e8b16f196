import numpy as np

TRICK = "a symmetric weight: a forgotten transpose would not show, and none is forgotten"


def inputs(rng):
    r = rng.normal(size=(3, 3))
    return {"x": rng.normal(size=(5, 3)), "S": r + r.T}


def forward(x, S):
    return np.tanh(x @ S)


def backward(grad_output, x, S):
    d = grad_output * (1 - np.tanh(x @ S) ** 2)
    return {"x": d @ S.T, "S": x.T @ d}
