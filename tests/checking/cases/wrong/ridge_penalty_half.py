import numpy as np

SOURCE = (
    "https://github.com/jingtinghuang/CS231n-Spring-2017/issues/3: the penalty is lam * ||W||^2, its "
    "gradient is added as lam * W, as if it had the 1/2"
)
EXPECT = "constant-factor"
ACCEPT = ["missing-term"]
WHERE = "W"
LAM = 0.4


def inputs(rng):
    return {"X": rng.normal(size=(8, 4)), "W": rng.normal(size=(4, 3)), "Y": rng.normal(size=(8, 3))}


def forward(X, W, Y):
    return np.sum((X.dot(W) - Y) ** 2) / len(X) + LAM * np.sum(W * W)


def backward(grad_output, X, W, Y):
    dW = 2 * X.T.dot(X.dot(W) - Y) / len(X)
    dW += LAM * W
    return {"W": grad_output * dW}


FIX = "dW += 2 * LAM * W"


def backward_fixed(grad_output, X, W, Y):
    return {"W": grad_output * (2 * X.T.dot(X.dot(W) - Y) / len(X) + 2 * LAM * W)}
