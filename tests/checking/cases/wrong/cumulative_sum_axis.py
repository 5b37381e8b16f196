import numpy as np

SOURCE = "cumsum's backward, the reversed cumsum, run along the other axis of a square array"
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(4, 4))}


def forward(x):
    return np.cumsum(x, axis=1)


def backward(grad_output, x):
    return {"x": np.flip(np.cumsum(np.flip(grad_output, 0), axis=0), 0)}


FIX = "flip and cumsum along axis 1"


def backward_fixed(grad_output, x):
    return {"x": np.flip(np.cumsum(np.flip(grad_output, 1), axis=1), 1)}
