import numpy as np

SOURCE = "regression network with a linear output, whose output delta still carries the sigmoid's derivative"
EXPECT = "extra-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["X", "W1", "W2"]


def sig(z):
    return 1 / (1 + np.exp(-z))


def inputs(rng):
    return {
        "X": rng.normal(size=(6, 2)),
        "W1": rng.normal(size=(2, 3)),
        "W2": rng.normal(size=(3, 1)),
        "y": rng.normal(size=(6, 1)),
    }


def forward(X, W1, W2, y):
    return 0.5 * np.sum((sig(X @ W1) @ W2 - y) ** 2)


def backward(grad_output, X, W1, W2, y):
    h = sig(X @ W1)
    out = h @ W2
    d2 = grad_output * (out - y) * sig(out) * (1 - sig(out))
    d1 = d2 @ W2.T * h * (1 - h)
    return {"X": d1 @ W1.T, "W1": X.T @ d1, "W2": h.T @ d2}


FIX = "d2 = grad_output * (out - y)"


def backward_fixed(grad_output, X, W1, W2, y):
    h = sig(X @ W1)
    d2 = grad_output * (h @ W2 - y)
    d1 = d2 @ W2.T * h * (1 - h)
    return {"X": d1 @ W1.T, "W1": X.T @ d1, "W2": h.T @ d2}
