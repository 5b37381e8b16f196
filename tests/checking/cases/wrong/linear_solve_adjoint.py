import numpy as np

SOURCE = (
    "adjoint of a linear solve taken with the matrix itself: db = solve(A, g), right only for symmetric A"
)
EXPECT = "transposed"
ACCEPT = []
WHERE = ["A", "b"]


def inputs(rng):
    return {"A": rng.normal(size=(4, 4)) + 4 * np.eye(4), "b": rng.normal(size=(4, 2))}


def forward(A, b):
    return np.linalg.solve(A, b)


def backward(grad_output, A, b):
    x = np.linalg.solve(A, b)
    lam = np.linalg.solve(A, grad_output)
    return {"A": -lam @ x.T, "b": lam}


FIX = "lam = solve(A.T, grad_output)"


def backward_fixed(grad_output, A, b):
    x = np.linalg.solve(A, b)
    lam = np.linalg.solve(A.T, grad_output)
    return {"A": -lam @ x.T, "b": lam}
