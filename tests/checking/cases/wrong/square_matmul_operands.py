import numpy as np  # noqa: F401

SOURCE = "backward of A @ B returned as (dB, dA): with square matrices nothing complains"
EXPECT = "swapped-gradients"
ACCEPT = []
WHERE = ["A", "B"]


def inputs(rng):
    return {"A": rng.normal(size=(3, 3)), "B": rng.normal(size=(3, 3))}


def forward(A, B):
    return A @ B


def backward(grad_output, A, B):
    grads = A.T @ grad_output, grad_output @ B.T
    return dict(zip(("A", "B"), grads, strict=True))


FIX = "grads = grad_output @ B.T, A.T @ grad_output"


def backward_fixed(grad_output, A, B):
    return {"A": grad_output @ B.T, "B": A.T @ grad_output}
