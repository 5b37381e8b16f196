"""Two layers trained on the mean sample: rows averaged before they are multiplied, in both gradients."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(6, 3)), "W1": rng.normal(size=(3, 4)), "W2": rng.normal(size=(4, 2))}


def forward(x, W1, W2):
    return np.tanh(x @ W1) @ W2


def backward(grad_output, x, W1, W2):
    h = np.tanh(x @ W1)
    dW2 = np.outer(h.mean(axis=0), grad_output.sum(axis=0))
    dh = (grad_output @ W2.T) * (1 - h**2)
    dW1 = np.outer(x.mean(axis=0), dh.sum(axis=0))
    return {"W1": dW1, "W2": dW2}


def backward_fixed(grad_output, x, W1, W2):
    h = np.tanh(x @ W1)
    dh = (grad_output @ W2.T) * (1 - h**2)
    return {"W1": x.T @ dh, "W2": h.T @ grad_output}
