import numpy as np

TRICK = "least squares with a Vandermonde matrix: ill-conditioned normal equations"
TOL = 1e-5


def inputs(rng):
    t = np.linspace(0, 1, 8) + 0.01 * rng.normal(size=8)
    return {"y": rng.normal(size=8), "V": np.vander(t, 5)}


def forward(y, V):
    return np.linalg.solve(V.T @ V, V.T @ y)


def backward(grad_output, y, V):
    A = V.T @ V
    c = np.linalg.solve(A, V.T @ y)
    lam = np.linalg.solve(A, grad_output)
    return {"y": V @ lam, "V": np.outer(y - V @ c, lam) - np.outer(V @ lam, c)}
