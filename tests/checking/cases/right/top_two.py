import numpy as np

TRICK = "the sum of the two largest entries, found with argpartition: the rest get a true zero"


def inputs(rng):
    return {"x": rng.normal(size=(3, 6))}


def forward(x):
    return np.sort(x, axis=1)[:, -2:].sum(axis=1)


def backward(grad_output, x):
    d = np.zeros_like(x)
    np.put_along_axis(d, np.argpartition(x, -2, axis=1)[:, -2:], grad_output[:, None], axis=1)
    return {"x": d}
