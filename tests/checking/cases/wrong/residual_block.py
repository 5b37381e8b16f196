import numpy as np

SOURCE = "a residual block whose backward returns the branch's gradient only; the skip is dropped"
EXPECT = "missing-term"
ACCEPT = ["overwritten-not-accumulated"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4)), "W": rng.normal(size=(4, 4))}


def forward(x, W):
    return x + np.maximum(x @ W, 0)


def backward(grad_output, x, W):
    dz = grad_output * (x @ W > 0)
    return {"x": dz @ W.T, "W": x.T @ dz}


FIX = "dx = grad_output + dz @ W.T"


def backward_fixed(grad_output, x, W):
    dz = grad_output * (x @ W > 0)
    return {"x": grad_output + dz @ W.T, "W": x.T @ dz}
