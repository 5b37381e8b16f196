import numpy as np

TRICK = "values exactly at the bounds of a clip; slope 1 at the lower edge and 0 at the upper"


def inputs(rng):
    x = rng.uniform(-2, 2, size=(4, 4))
    x[0], x[1] = -1.0, 1.0
    return {"x": x}


def forward(x):
    return np.clip(x, -1.0, 1.0) ** 3


def backward(grad_output, x):
    inside = (x >= -1.0) & (x < 1.0)
    return {"x": grad_output * 3 * np.clip(x, -1.0, 1.0) ** 2 * inside}
