import numpy as np

TRICK = (
    "a maximum with ties where each winner is given the full slope: entry by entry within the left and "
    "right slopes"
)


def inputs(rng):
    x = rng.normal(size=(3, 4))
    x[1] = 0.5
    x[2, :2] = 4.0
    return {"x": x}


def forward(x):
    return np.max(x, axis=1)


def backward(grad_output, x):
    return {"x": grad_output[:, None] * (x == np.max(x, axis=1, keepdims=True))}
