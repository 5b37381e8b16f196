import numpy as np

SOURCE = "column convention: activations and deltas are summed over the examples before the outer product"
EXPECT = "averaged-batch"
ACCEPT = []
WHERE = ["W1", "W2"]


def inputs(rng):
    return {"X": rng.normal(size=(3, 5)), "W1": rng.normal(size=(4, 3)), "W2": rng.normal(size=(2, 4))}


def forward(X, W1, W2):
    return W2 @ np.tanh(W1 @ X)


def outer_of_sums(delta, act):
    return delta.sum(axis=1, keepdims=True) @ act.sum(axis=1, keepdims=True).T


def backward(grad_output, X, W1, W2):
    A = np.tanh(W1 @ X)
    delta = (W2.T @ grad_output) * (1 - A**2)
    return {"X": W1.T @ delta, "W1": outer_of_sums(delta, X), "W2": outer_of_sums(grad_output, A)}


FIX = "dW = delta @ act.T, which multiplies per example and then sums"


def backward_fixed(grad_output, X, W1, W2):
    A = np.tanh(W1 @ X)
    delta = (W2.T @ grad_output) * (1 - A**2)
    return {"X": W1.T @ delta, "W1": delta @ X.T, "W2": grad_output @ A.T}
