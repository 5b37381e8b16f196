import numpy as np

TRICK = "log|det| of a nearly singular matrix: gradients of 1e6"
TOL = 1e-5


def inputs(rng):
    A = rng.normal(size=(3, 3))
    A[2] = A[0] + A[1] + 1e-6 * rng.normal(size=3)
    return {"A": A}


def forward(A):
    return np.linalg.slogdet(A)[1]


def backward(grad_output, A):
    return {"A": grad_output * np.linalg.inv(A).T}
