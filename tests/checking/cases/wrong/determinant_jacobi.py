import numpy as np

SOURCE = "Jacobi's formula with the inverse in place of its transpose: d det(A) = det(A) * inv(A)"
EXPECT = "transposed"
ACCEPT = []
WHERE = "A"


def inputs(rng):
    return {"A": rng.normal(size=(3, 3)) + 2 * np.eye(3)}


def forward(A):
    return np.asarray(np.linalg.det(A))


def backward(grad_output, A):
    return {"A": grad_output * np.linalg.det(A) * np.linalg.inv(A)}


FIX = "dA = g * det(A) * inv(A).T"


def backward_fixed(grad_output, A):
    return {"A": grad_output * np.linalg.det(A) * np.linalg.inv(A).T}
