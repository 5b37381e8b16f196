import numpy as np

TRICK = "arguments in Fortran order and strided views"


def inputs(rng):
    base = rng.normal(size=(8, 6))
    return {"A": np.asfortranarray(rng.normal(size=(4, 3))), "B": base[::2, ::2][:3]}


def forward(A, B):
    return A @ B


def backward(grad_output, A, B):
    return {"A": grad_output @ B.T, "B": (grad_output.T @ A).T}
