import numpy as np

SOURCE = "logistic regression 'vectorised' by averaging features and errors separately"
EXPECT = "averaged-batch"
ACCEPT = []
WHERE = "w"


def inputs(rng):
    y = np.array([1, 0, 0, 1, 1, 0, 1])
    return {"X": rng.normal(size=(7, 3)), "y": y, "w": rng.normal(size=3), "b": rng.normal(size=1)}


def forward(X, y, w, b):
    z = X @ w + b
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - y * z)


def backward(grad_output, X, y, w, b):
    error = 1 / (1 + np.exp(-(X @ w + b))) - y
    dw = X.mean(axis=0) * error.mean()
    return {"w": grad_output * dw, "b": grad_output * error.mean(keepdims=True)}


FIX = "dw = X.T @ error / len(y)"


def backward_fixed(grad_output, X, y, w, b):
    error = 1 / (1 + np.exp(-(X @ w + b))) - y
    return {"w": grad_output * X.T @ error / len(y), "b": grad_output * error.mean(keepdims=True)}
