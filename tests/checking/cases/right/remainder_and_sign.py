import numpy as np

TRICK = "x mod 1 away from the wraps, sign away from zero, a comparison as a number"


def inputs(rng):
    return {"x": rng.integers(-4, 4, size=6) + rng.uniform(0.2, 0.8, size=6), "k": rng.normal(size=6)}


def forward(x, k):
    return k * np.mod(x, 1.0) + np.sign(x) + (x > 1)


def backward(grad_output, x, k):
    return {"x": grad_output * k, "k": grad_output * np.mod(x, 1.0)}
