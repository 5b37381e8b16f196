import numpy as np

SOURCE = "d(inv(A)): -inv(A) @ g @ inv(A) without the transposes, seen wherever A was symmetric in the tests"
EXPECT = "transposed"
ACCEPT = []
WHERE = "A"


def inputs(rng):
    return {"A": rng.normal(size=(3, 3)) + 3 * np.eye(3)}


def forward(A):
    return np.linalg.inv(A)


def backward(grad_output, A):
    Ai = np.linalg.inv(A)
    return {"A": -Ai @ grad_output @ Ai}


FIX = "dA = -Ai.T @ grad_output @ Ai.T"


def backward_fixed(grad_output, A):
    Ai = np.linalg.inv(A)
    return {"A": -Ai.T @ grad_output @ Ai.T}
