import numpy as np  # noqa: F401

SOURCE = "x.T forward, grad_output handed back as it came; a square matrix takes it"
EXPECT = "transposed"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 3)), "y": rng.normal(size=(3, 3))}


def forward(x, y):
    return x.T + y


def backward(grad_output, x, y):
    return {"x": grad_output, "y": grad_output}


FIX = "dx = grad_output.T"


def backward_fixed(grad_output, x, y):
    return {"x": grad_output.T, "y": grad_output}
