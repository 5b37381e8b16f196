import numpy as np

SOURCE = "L2 normalisation: the gradient is divided by the norm, as if the norm were a constant"
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "v"


def inputs(rng):
    return {"v": rng.normal(size=(4, 3))}


def forward(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def backward(grad_output, v):
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return {"v": grad_output / norm}


FIX = "(g - u * (g * u).sum(axis=1, keepdims=True)) / norm"


def backward_fixed(grad_output, v):
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    u = v / norm
    return {"v": (grad_output - u * (grad_output * u).sum(axis=1, keepdims=True)) / norm}
