import numpy as np

SOURCE = "column convention: the bias (n, 1) receives the whole (n, m) delta"
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape"]
WHERE = "b"


def inputs(rng):
    return {"W": rng.normal(size=(3, 4)), "A": rng.normal(size=(4, 5)), "b": rng.normal(size=(3, 1))}


def forward(W, A, b):
    return np.maximum(0, np.dot(W, A) + b)


def backward(grad_output, W, A, b):
    dZ = np.where(np.dot(W, A) + b > 0, grad_output, 0)
    return {"W": np.dot(dZ, A.T), "A": np.dot(W.T, dZ), "b": dZ}


FIX = "db = np.sum(dZ, axis=1, keepdims=True)"


def backward_fixed(grad_output, W, A, b):
    dZ = np.where(np.dot(W, A) + b > 0, grad_output, 0)
    return {"W": np.dot(dZ, A.T), "A": np.dot(W.T, dZ), "b": np.sum(dZ, axis=1, keepdims=True)}
