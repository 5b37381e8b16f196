import numpy as np

TRICK = "logistic loss at margins of +-1e3: losses of 1e3 beside losses of 1e-300, slopes 1 and 0"


def inputs(rng):
    y = np.array([1, -1, 1, -1, 1])
    return {"f": y * np.array([1e3, 700.0, -900.0, -0.5, 2.0]) * rng.uniform(0.9, 1.1, size=5), "y": y}


def forward(f, y):
    return np.logaddexp(0, -y * f)


def backward(grad_output, f, y):
    m = y * f
    e = np.exp(-np.abs(m))
    return {"f": -grad_output * y * np.where(m > 0, e, 1.0) / (1 + e)}
