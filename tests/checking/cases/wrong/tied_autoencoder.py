import numpy as np

SOURCE = "autoencoder with tied weights: the encoder's part replaces the decoder's"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(5, 4)), "W": rng.normal(size=(4, 3)), "c": rng.normal(size=4)}


def forward(x, W, c):
    return np.tanh(x @ W) @ W.T + c


def backward(grad_output, x, W, c):
    grads = {"c": grad_output.sum(axis=0)}
    h = np.tanh(x @ W)
    grads["W"] = grad_output.T @ h
    dz = (grad_output @ W) * (1 - h**2)
    grads["W"] = x.T @ dz
    grads["x"] = dz @ W.T
    return grads


FIX = 'grads["W"] += x.T @ dz'


def backward_fixed(grad_output, x, W, c):
    grads = {"c": grad_output.sum(axis=0)}
    h = np.tanh(x @ W)
    grads["W"] = grad_output.T @ h
    dz = (grad_output @ W) * (1 - h**2)
    grads["W"] += x.T @ dz
    grads["x"] = dz @ W.T
    return grads
