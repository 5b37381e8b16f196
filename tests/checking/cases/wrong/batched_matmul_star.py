import numpy as np

SOURCE = (
    "einsum habits: the gradient of a batched product written with * because all matrices of the batch "
    "are square"
)
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = []
WHERE = "b"


def inputs(rng):
    return {"a": rng.normal(size=(2, 3, 3)), "b": rng.normal(size=(2, 3, 3))}


def forward(a, b):
    return np.matmul(a, b)


def backward(grad_output, a, b):
    da = np.matmul(grad_output, b.swapaxes(-1, -2))
    db = a.swapaxes(-1, -2) * grad_output
    return {"a": da, "b": db}


FIX = "db = a.swapaxes(-1, -2) @ grad_output"


def backward_fixed(grad_output, a, b):
    return {"a": np.matmul(grad_output, b.swapaxes(-1, -2)), "b": np.matmul(a.swapaxes(-1, -2), grad_output)}
