import numpy as np

TRICK = "all weights zero at the start: the hidden layer's gradient vanishes exactly"


def inputs(rng):
    return {
        "x": rng.normal(size=(4, 3)),
        "W1": np.zeros((3, 5)),
        "W2": np.zeros((5, 2)),
        "b": rng.normal(size=2),
    }


def forward(x, W1, W2, b):
    return np.tanh(x @ W1) @ W2 + b


def backward(grad_output, x, W1, W2, b):
    h = np.tanh(x @ W1)
    dz = (grad_output @ W2.T) * (1 - h**2)
    return {"x": dz @ W1.T, "W1": x.T @ dz, "W2": h.T @ grad_output, "b": grad_output.sum(0)}
