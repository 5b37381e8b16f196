import numpy as np

TRICK = "tanh at +-20 and beyond: 1 - tanh**2 rounds to zero, 1 / cosh**2 does not"


def inputs(rng):
    return {"x": np.array([-25.0, -19.0, -3.0, 0.0, 8.0, 22.0, 300.0]) + 0.1 * rng.normal(size=7)}


def forward(x):
    return np.tanh(x)


def backward(grad_output, x):
    return {"x": grad_output / np.cosh(x) ** 2}
