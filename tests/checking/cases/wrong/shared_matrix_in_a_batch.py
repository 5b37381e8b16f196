import numpy as np

SOURCE = "a batch of matrices times one shared matrix: its gradient keeps the batch axis"
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape"]
WHERE = "M"


def inputs(rng):
    return {"A": rng.normal(size=(3, 2, 4)), "M": rng.normal(size=(4, 2))}


def forward(A, M):
    return np.matmul(A, M)


def backward(grad_output, A, M):
    return {"A": np.matmul(grad_output, M.T), "M": np.matmul(np.swapaxes(A, 1, 2), grad_output)}


FIX = "dM = np.matmul(np.swapaxes(A, 1, 2), grad_output).sum(axis=0)"


def backward_fixed(grad_output, A, M):
    return {"A": np.matmul(grad_output, M.T), "M": np.matmul(np.swapaxes(A, 1, 2), grad_output).sum(axis=0)}
