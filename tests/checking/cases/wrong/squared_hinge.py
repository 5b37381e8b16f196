import numpy as np

SOURCE = (
    "squared hinge loss whose gradient keeps the plain hinge's shape times the margin, without the 2 of"
    " the square"
)
EXPECT = "constant-factor"
ACCEPT = ["missing-local-derivative"]
WHERE = ["w", "b"]


def inputs(rng):
    y = np.array([1, -1, 1, 1, -1, -1, 1])
    return {"X": rng.normal(size=(7, 3)), "y": y, "w": rng.normal(size=3), "b": rng.normal(size=())}


def forward(X, y, w, b):
    margin = 1 - y * (X @ w + b)
    return (np.maximum(margin, 0) ** 2).mean()


def backward(grad_output, X, y, w, b):
    margin = np.maximum(1 - y * (X @ w + b), 0)
    df = -grad_output * y * margin / len(y)
    return {"w": X.T @ df, "b": df.sum()}


FIX = "df = -2 * grad_output * y * margin / n"


def backward_fixed(grad_output, X, y, w, b):
    margin = np.maximum(1 - y * (X @ w + b), 0)
    df = -2 * grad_output * y * margin / len(y)
    return {"w": X.T @ df, "b": df.sum()}
