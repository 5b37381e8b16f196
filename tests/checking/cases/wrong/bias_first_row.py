import numpy as np

SOURCE = "a per-example formula moved to batches: the bias takes the gradient of the first example"
EXPECT = "broadcast-not-summed"
ACCEPT = ["missing-term"]
WHERE = "b"


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}


def forward(x, W, b):
    return np.tanh(x @ W + b)


def backward(grad_output, x, W, b):
    d = grad_output * (1 - np.tanh(x @ W + b) ** 2)
    return {"x": d @ W.T, "W": x.T @ d, "b": d[0]}


FIX = "db = d.sum(axis=0)"


def backward_fixed(grad_output, x, W, b):
    d = grad_output * (1 - np.tanh(x @ W + b) ** 2)
    return {"x": d @ W.T, "W": x.T @ d, "b": d.sum(axis=0)}
