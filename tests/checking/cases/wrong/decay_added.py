import numpy as np

SOURCE = "weight decay added in the backward of a loss that has no penalty: what zero upstream leaves is its own term"
EXPECT = "extra-term"
ACCEPT = []
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 2))}


def forward(x, W):
    return np.tanh(x @ W)


def backward(grad_output, x, W):
    d = grad_output * (1 - np.tanh(x @ W) ** 2)
    return {"x": d @ W.T, "W": x.T @ d + 0.01 * W}


FIX = "drop + 0.01 * W, or put the penalty into the loss"


def backward_fixed(grad_output, x, W):
    d = grad_output * (1 - np.tanh(x @ W) ** 2)
    return {"x": d @ W.T, "W": x.T @ d}
