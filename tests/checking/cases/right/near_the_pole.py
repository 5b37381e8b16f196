import numpy as np

TRICK = "tan close to pi/2 and 1/x close to 0: slopes of 1e10 that change within 1e-5"


def inputs(rng):
    return {"a": np.pi / 2 - 10.0 ** rng.uniform(-5, -1, size=4), "r": 10.0 ** rng.uniform(-5, 0, size=4)}


def forward(a, r):
    return np.tan(a) + 1 / r


def backward(grad_output, a, r):
    return {"a": grad_output / np.cos(a) ** 2, "r": -grad_output / r**2}
