import numpy as np

SOURCE = "Poisson regression trained on batches: the mean covariate times the mean residual"
EXPECT = "averaged-batch"
ACCEPT = []
WHERE = "beta"


def inputs(rng):
    return {
        "X": rng.normal(size=(8, 3)),
        "counts": rng.integers(0, 6, size=8),
        "beta": 0.4 * rng.normal(size=3),
    }


def forward(X, counts, beta):
    eta = X @ beta
    return np.average(np.exp(eta) - counts * eta)


def backward(grad_output, X, counts, beta):
    residual = np.average(np.exp(X @ beta) - counts)
    return {"beta": grad_output * residual * np.average(X, axis=0)}


FIX = "dbeta = grad_output * X.T @ (np.exp(X @ beta) - counts) / len(X)"


def backward_fixed(grad_output, X, counts, beta):
    residual = np.exp(X @ beta) - counts
    return {"beta": grad_output * X.T @ residual / len(X)}
