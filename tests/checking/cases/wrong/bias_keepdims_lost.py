import numpy as np

SOURCE = "the bias is a row (1, n); its gradient comes back as (n,), and later updates broadcast it"
EXPECT = "wrong-shape"
ACCEPT = []
WHERE = "b"


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2)), "b": rng.normal(size=(1, 2))}


def forward(x, W, b):
    return np.dot(x, W) + b


def backward(grad_output, x, W, b):
    return {"x": np.dot(grad_output, W.T), "W": np.dot(x.T, grad_output), "b": np.sum(grad_output, axis=0)}


FIX = "db = np.sum(grad_output, axis=0, keepdims=True)"


def backward_fixed(grad_output, x, W, b):
    return {
        "x": np.dot(grad_output, W.T),
        "W": np.dot(x.T, grad_output),
        "b": np.sum(grad_output, axis=0, keepdims=True),
    }
