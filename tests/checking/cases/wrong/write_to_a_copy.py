import numpy as np

SOURCE = "NumPy trap: d[rows][:, cols] += g writes into a temporary, so the gradient stays zero"
EXPECT = "zero-gradient"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(5, 4)), "rows": np.array([0, 3, 4]), "cols": np.array([2, 1])}


def forward(x, rows, cols):
    return x[rows][:, cols] ** 2


def backward(grad_output, x, rows, cols):
    d = np.zeros_like(x)
    d[rows][:, cols] += 2 * x[rows][:, cols] * grad_output
    return {"x": d}


FIX = "d[np.ix_(rows, cols)] += ..."


def backward_fixed(grad_output, x, rows, cols):
    d = np.zeros_like(x)
    d[np.ix_(rows, cols)] += 2 * x[np.ix_(rows, cols)] * grad_output
    return {"x": d}
