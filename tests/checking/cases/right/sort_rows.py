import numpy as np

TRICK = "sorting is a permutation: the gradient goes back where the values came from"


def inputs(rng):
    return {"x": rng.normal(size=(3, 7))}


def forward(x):
    return np.sort(x, axis=1)


def backward(grad_output, x):
    order = np.argsort(x, axis=1)
    dx = np.empty_like(x)
    np.put_along_axis(dx, order, grad_output, axis=1)
    return {"x": dx}
