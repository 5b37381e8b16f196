import numpy as np

SOURCE = "lasso: the gradient of lam * sum(|w|) is added as lam * |w|"
EXPECT = "wrong-local-derivative"
ACCEPT = ["wrong-evaluation-point"]
WHERE = "w"
LAM = 0.6


def inputs(rng):
    return {"X": rng.normal(size=(6, 4)), "y": rng.normal(size=6), "w": rng.normal(size=4)}


def forward(X, y, w):
    return 0.5 * np.sum((X @ w - y) ** 2) + LAM * np.abs(w).sum()


def backward(grad_output, X, y, w):
    return {"w": grad_output * (X.T @ (X @ w - y) + LAM * np.abs(w))}


FIX = "LAM * np.sign(w)"


def backward_fixed(grad_output, X, y, w):
    return {"w": grad_output * (X.T @ (X @ w - y) + LAM * np.sign(w))}
