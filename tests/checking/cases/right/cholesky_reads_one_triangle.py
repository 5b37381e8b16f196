import numpy as np

TRICK = "np.linalg.cholesky reads the lower triangle only: the upper triangle's gradient is zero"


def inputs(rng):
    r = rng.normal(size=(3, 3))
    return {"A": r @ r.T + 2 * np.eye(3)}


def forward(A):
    return np.linalg.cholesky(A)


def backward(grad_output, A):
    L = np.linalg.cholesky(A)
    phi = np.tril(L.T @ np.tril(grad_output))
    phi[np.diag_indices(3)] /= 2
    Li = np.linalg.inv(L)
    s = Li.T @ phi @ Li
    s = s + s.T
    return {"A": np.tril(s) - np.diag(np.diag(s)) / 2}
