import numpy as np

SOURCE = "column convention, as many hidden units as examples: W.T * delta runs without complaint"
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = []
WHERE = ["X", "W1", "b1"]


def inputs(rng):
    return {
        "X": rng.normal(size=(2, 4)),
        "W1": rng.normal(size=(4, 2)),
        "b1": rng.normal(size=(4, 1)),
        "W2": rng.normal(size=(4, 4)),
    }


def forward(X, W1, b1, W2):
    return W2 @ np.tanh(W1 @ X + b1)


def backward(grad_output, X, W1, b1, W2):
    h = np.tanh(W1 @ X + b1)
    dh = W2.T * grad_output
    dz = dh * (1 - h * h)
    return {"X": W1.T @ dz, "W1": dz @ X.T, "b1": dz.sum(axis=1, keepdims=True), "W2": grad_output @ h.T}


FIX = "dh = W2.T @ grad_output"


def backward_fixed(grad_output, X, W1, b1, W2):
    h = np.tanh(W1 @ X + b1)
    dz = (W2.T @ grad_output) * (1 - h * h)
    return {"X": W1.T @ dz, "W1": dz @ X.T, "b1": dz.sum(axis=1, keepdims=True), "W2": grad_output @ h.T}
