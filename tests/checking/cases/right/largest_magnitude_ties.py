import numpy as np

TRICK = "maximum norm with two entries of equal size and opposite sign; the first takes all"


def inputs(rng):
    x = rng.uniform(-1, 1, size=(3, 5))
    x[0, 1], x[0, 4] = 1.5, -1.5
    x[1, 0], x[1, 3] = -2.0, 2.0
    return {"x": x}


def forward(x):
    return np.abs(x).max(axis=1)


def backward(grad_output, x):
    d = np.zeros_like(x)
    rows = np.arange(len(x))
    first = np.abs(x).argmax(axis=1)
    d[rows, first] = grad_output * np.sign(x[rows, first])
    return {"x": d}
