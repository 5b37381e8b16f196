import numpy as np

SOURCE = "Coursera-style layers: the cost already carries 1/m and the linear layers divide by m again"
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["extra-term", "constant-factor"]
WHERE = ["W1", "b1", "W2", "b2"]


def inputs(rng):
    return {
        "X": rng.normal(size=(3, 5)),
        "Y": rng.normal(size=(2, 5)),
        "W1": rng.normal(size=(4, 3)),
        "b1": rng.normal(size=(4, 1)),
        "W2": rng.normal(size=(2, 4)),
        "b2": rng.normal(size=(2, 1)),
    }


def forward(X, Y, W1, b1, W2, b2):
    A1 = np.tanh(W1 @ X + b1)
    return 0.5 * np.sum((W2 @ A1 + b2 - Y) ** 2) / X.shape[1]


def linear_backward(dZ, A_prev, W):
    m = A_prev.shape[1]
    dW = np.dot(dZ, A_prev.T) / m
    db = np.sum(dZ, axis=1, keepdims=True) / m
    return np.dot(W.T, dZ), dW, db


def backward(grad_output, X, Y, W1, b1, W2, b2):
    m = X.shape[1]
    A1 = np.tanh(W1 @ X + b1)
    dZ2 = grad_output * (W2 @ A1 + b2 - Y) / m
    dA1, dW2, db2 = linear_backward(dZ2, A1, W2)
    dX, dW1, db1 = linear_backward(dA1 * (1 - A1**2), X, W1)
    return {"X": dX, "W1": dW1, "b1": db1, "W2": dW2, "b2": db2}


FIX = "1 / m belongs to the cost alone: drop it in linear_backward"


def backward_fixed(grad_output, X, Y, W1, b1, W2, b2):
    A1 = np.tanh(W1 @ X + b1)
    dZ2 = grad_output * (W2 @ A1 + b2 - Y) / X.shape[1]
    dZ1 = (W2.T @ dZ2) * (1 - A1**2)
    return {
        "X": W1.T @ dZ1,
        "W1": dZ1 @ X.T,
        "b1": dZ1.sum(axis=1, keepdims=True),
        "W2": dZ2 @ A1.T,
        "b2": dZ2.sum(axis=1, keepdims=True),
    }
