import numpy as np

SOURCE = "a buffer made like the index array: dtype int, so each gradient loses its fraction"
EXPECT = "dtype-or-overflow"
ACCEPT = ["zero-gradient"]
WHERE = "v"


def inputs(rng):
    return {"v": 3 * rng.normal(size=6), "order": np.array([3, 0, 5, 1, 4, 2])}


def forward(v, order):
    return v[order]


def backward(grad_output, v, order):
    d = np.zeros_like(order)
    d[order] = grad_output.astype(d.dtype)
    return {"v": d.astype(float)}


FIX = "d = np.zeros_like(v)"


def backward_fixed(grad_output, v, order):
    d = np.zeros_like(v)
    d[order] = grad_output
    return {"v": d}
