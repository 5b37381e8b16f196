import numpy as np

SOURCE = "x.T A x differentiated as A x, right only with the 2 and for symmetric A"
EXPECT = "missing-term"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"A": rng.normal(size=(4, 4)), "x": rng.normal(size=4)}


def forward(A, x):
    return x @ A @ x


def backward(grad_output, A, x):
    return {"A": grad_output * np.outer(x, x), "x": grad_output * (A @ x)}


FIX = "dx = grad_output * (A + A.T) @ x"


def backward_fixed(grad_output, A, x):
    return {"A": grad_output * np.outer(x, x), "x": grad_output * (A + A.T) @ x}
