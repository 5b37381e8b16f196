import numpy as np

TRICK = "Euclidean norms of rows, one of them zero: 0 is a subgradient there"


def inputs(rng):
    x = rng.normal(size=(4, 3))
    x[2] = 0.0
    return {"x": x}


def forward(x):
    return np.sqrt(np.sum(x * x, axis=1))


def backward(grad_output, x):
    n = np.sqrt(np.sum(x * x, axis=1, keepdims=True))
    return {"x": np.divide(grad_output[:, None] * x, n, out=np.zeros_like(x), where=n > 0)}
