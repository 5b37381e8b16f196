import numpy as np

TRICK = "one-hot rows as floats: most rows of the weight get a true zero"


def inputs(rng):
    return {"x": np.eye(7)[rng.integers(0, 3, size=4)], "W": rng.normal(size=(7, 2))}


def forward(x, W):
    return np.exp(x @ W)


def backward(grad_output, x, W):
    d = grad_output * np.exp(x @ W)
    return {"x": d @ W.T, "W": x.T @ d}
