"""The inverse of a matrix: the transposes are left out."""

import numpy as np


def inputs(rng):
    return {"A": rng.normal(size=(4, 4)) + 4 * np.eye(4)}


def forward(A):
    return np.linalg.inv(A)


def backward(grad_output, A):
    inv = np.linalg.inv(A)
    return {"A": -inv @ grad_output @ inv}


def backward_fixed(grad_output, A):
    inv = np.linalg.inv(A)
    return {"A": -inv.T @ grad_output @ inv.T}
