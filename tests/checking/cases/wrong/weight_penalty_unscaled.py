import numpy as np  # noqa: F401

SOURCE = "regularised loss: the data part is multiplied by the incoming gradient, the penalty's part is not"
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = "w"
LAM = 0.7


def inputs(rng):
    return {"X": rng.normal(size=(6, 4)), "y": rng.normal(size=6), "w": rng.normal(size=4)}


def forward(X, y, w):
    r = X @ w - y
    return r @ r / len(y) + LAM * (w @ w)


def backward(grad_output, X, y, w):
    r = X @ w - y
    dw = grad_output * 2 * X.T @ r / len(y)
    dw += 2 * LAM * w
    return {"w": dw}


FIX = "dw += grad_output * 2 * LAM * w"


def backward_fixed(grad_output, X, y, w):
    r = X @ w - y
    return {"w": grad_output * (2 * X.T @ r / len(y) + 2 * LAM * w)}
