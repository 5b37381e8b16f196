import numpy as np

SOURCE = "np.transpose with a cyclic permutation, undone with the same permutation instead of its inverse"
EXPECT = "transposed"
ACCEPT = ["wrong-axis", "wrong-position"]
WHERE = "x"
AXES = (1, 2, 0)


def inputs(rng):
    return {"x": rng.normal(size=(3, 3, 3)), "w": rng.normal(size=(3, 3, 3))}


def forward(x, w):
    return np.transpose(x, AXES) * w


def backward(grad_output, x, w):
    return {"x": np.transpose(grad_output * w, AXES), "w": grad_output * np.transpose(x, AXES)}


FIX = "np.transpose(grad_output * w, np.argsort(AXES))"


def backward_fixed(grad_output, x, w):
    return {"x": np.transpose(grad_output * w, np.argsort(AXES)), "w": grad_output * np.transpose(x, AXES)}
