import numpy as np

TRICK = "np.minimum(a, b) with many equal pairs; the whole gradient goes to a"


def inputs(rng):
    a = rng.integers(-1, 2, size=(4, 4)).astype(float)
    b = np.where(rng.uniform(size=(4, 4)) < 0.5, a, rng.normal(size=(4, 4)))
    b[0] = a[0]
    return {"a": a, "b": b}


def forward(a, b):
    return np.minimum(a, b)


def backward(grad_output, a, b):
    return {"a": np.where(a <= b, grad_output, 0), "b": np.where(a > b, grad_output, 0)}
