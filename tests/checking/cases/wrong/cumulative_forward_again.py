import numpy as np

SOURCE = "cumsum's backward as another cumsum, not reversed: the Jacobian in place of its transpose"
EXPECT = "transposed"
ACCEPT = ["wrong-axis"]
WHERE = "v"


def inputs(rng):
    return {"v": rng.normal(size=(3, 5))}


def forward(v):
    return np.add.accumulate(v, axis=1)


def backward(grad_output, v):
    return {"v": np.add.accumulate(grad_output, axis=1)}


FIX = "np.add.accumulate(grad_output[:, ::-1], axis=1)[:, ::-1]"


def backward_fixed(grad_output, v):
    return {"v": np.add.accumulate(grad_output[:, ::-1], axis=1)[:, ::-1]}
