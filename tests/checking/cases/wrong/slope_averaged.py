import numpy as np

SOURCE = (
    "mini-batch code in which the hidden layer's slope is averaged over the batch before it meets the error"
)
EXPECT = "averaged-batch"
ACCEPT = ["wrong-evaluation-point"]
WHERE = ["x", "W"]


def inputs(rng):
    return {"x": rng.normal(size=(6, 3)), "W": rng.normal(size=(3, 4)), "v": rng.normal(size=(4, 2))}


def forward(x, W, v):
    return np.tanh(x @ W) @ v


def backward(grad_output, x, W, v):
    h = np.tanh(x @ W)
    slope = (1 - h**2).mean(axis=0)
    dz = (grad_output @ v.T) * slope
    return {"x": dz @ W.T, "W": x.T @ dz, "v": h.T @ grad_output}


FIX = "slope = 1 - h**2, one per example"


def backward_fixed(grad_output, x, W, v):
    h = np.tanh(x @ W)
    dz = (grad_output @ v.T) * (1 - h**2)
    return {"x": dz @ W.T, "W": x.T @ dz, "v": h.T @ grad_output}
