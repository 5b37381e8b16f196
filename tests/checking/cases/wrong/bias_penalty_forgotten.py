import numpy as np

SOURCE = (
    "https://github.com/Burton2000/CS231n-2017/issues/9: the loss penalises weights and biases, the "
    "biases' gradient lacks 2 * reg * b"
)
EXPECT = "missing-term"
ACCEPT = []
WHERE = ["b1", "b2"]
REG = 0.25


def inputs(rng):
    return {
        "X": rng.normal(size=(5, 3)),
        "T": rng.normal(size=(5, 2)),
        "W1": rng.normal(size=(3, 4)),
        "b1": rng.normal(size=4),
        "W2": rng.normal(size=(4, 2)),
        "b2": rng.normal(size=2),
    }


def forward(X, T, W1, b1, W2, b2):
    out = np.maximum(0, X @ W1 + b1) @ W2 + b2
    penalty = sum(np.sum(p * p) for p in (W1, b1, W2, b2))
    return np.sum((out - T) ** 2) / len(X) + REG * penalty


def backward(grad_output, X, T, W1, b1, W2, b2):
    hidden = np.maximum(0, X @ W1 + b1)
    dout = 2 * (hidden @ W2 + b2 - T) / len(X)
    dhidden = (dout @ W2.T) * (hidden > 0)
    grads = {
        "W2": hidden.T @ dout + 2 * REG * W2,
        "b2": dout.sum(axis=0),
        "W1": X.T @ dhidden + 2 * REG * W1,
        "b1": dhidden.sum(axis=0),
    }
    return {name: grad_output * g for name, g in grads.items()}


FIX = "b2: + 2 * REG * b2, b1: + 2 * REG * b1"


def backward_fixed(grad_output, X, T, W1, b1, W2, b2):
    hidden = np.maximum(0, X @ W1 + b1)
    dout = 2 * (hidden @ W2 + b2 - T) / len(X)
    dhidden = (dout @ W2.T) * (hidden > 0)
    grads = {
        "W2": hidden.T @ dout + 2 * REG * W2,
        "b2": dout.sum(axis=0) + 2 * REG * b2,
        "W1": X.T @ dhidden + 2 * REG * W1,
        "b1": dhidden.sum(axis=0) + 2 * REG * b1,
    }
    return {name: grad_output * g for name, g in grads.items()}
