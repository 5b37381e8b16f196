import numpy as np

SOURCE = (
    "cs231n's SVM loop done half: the wrong classes' columns get +x, the true class's column never gets -x"
)
EXPECT = "missing-term"
ACCEPT = []
WHERE = "W"


def inputs(rng):
    return {"X": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 4)), "y": np.array([0, 3, 1, 1, 2])}


def forward(X, W, y):
    loss = 0.0
    for i in range(len(X)):
        scores = X[i] @ W
        for j in range(W.shape[1]):
            if j != y[i]:
                loss = loss + np.maximum(0, scores[j] - scores[y[i]] + 1)
    return np.asarray(loss / len(X))


def backward(grad_output, X, W, y):
    dW = np.zeros_like(W)
    for i in range(len(X)):
        scores = X[i] @ W
        for j in range(W.shape[1]):
            if j == y[i]:
                continue
            if scores[j] - scores[y[i]] + 1 > 0:
                dW[:, j] += X[i]
    return {"W": grad_output * dW / len(X)}


FIX = "dW[:, y[i]] -= X[i], for each margin that is violated"


def backward_fixed(grad_output, X, W, y):
    dW = np.zeros_like(W)
    for i in range(len(X)):
        scores = X[i] @ W
        for j in range(W.shape[1]):
            if j != y[i] and scores[j] - scores[y[i]] + 1 > 0:
                dW[:, j] += X[i]
                dW[:, y[i]] -= X[i]
    return {"W": grad_output * dW / len(X)}
