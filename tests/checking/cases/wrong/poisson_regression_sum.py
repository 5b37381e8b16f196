import numpy as np

SOURCE = "GLM fitted by hand: the likelihood is a sum over observations, the score is X.T @ (mu - y) / n"
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor"]
WHERE = "beta"


def inputs(rng):
    X = rng.normal(size=(9, 3))
    return {"X": X, "y": rng.integers(0, 5, size=9), "beta": 0.3 * rng.normal(size=3)}


def forward(X, y, beta):
    eta = X @ beta
    return np.sum(np.exp(eta) - y * eta)


def backward(grad_output, X, y, beta):
    mu = np.exp(X.dot(beta))
    return {"beta": grad_output * X.T.dot(mu - y) / y.size}


FIX = "dbeta = grad_output * X.T @ (mu - y)"


def backward_fixed(grad_output, X, y, beta):
    mu = np.exp(X.dot(beta))
    return {"beta": grad_output * X.T.dot(mu - y)}
