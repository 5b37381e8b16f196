import numpy as np  # noqa: F401

SOURCE = (
    "weight decay in the gradient of the bias as well, though the penalty of the loss covers the weights only"
)
EXPECT = "extra-term"
ACCEPT = []
WHERE = "b"
DECAY = 0.3


def inputs(rng):
    return {
        "X": rng.normal(size=(5, 3)),
        "y": rng.normal(size=(5, 2)),
        "W": rng.normal(size=(3, 2)),
        "b": rng.normal(size=2),
    }


def forward(X, y, W, b):
    e = X @ W + b - y
    return 0.5 * (e**2).sum() + 0.5 * DECAY * (W**2).sum()


def backward(grad_output, X, y, W, b):
    e = X @ W + b - y
    dW = X.T @ e + DECAY * W
    db = e.sum(axis=0) + DECAY * b
    return {"W": grad_output * dW, "b": grad_output * db}


FIX = "db = e.sum(axis=0)"


def backward_fixed(grad_output, X, y, W, b):
    e = X @ W + b - y
    return {"W": grad_output * (X.T @ e + DECAY * W), "b": grad_output * e.sum(axis=0)}
