import numpy as np

TRICK = "maximum(x, 0) at exact zeros with the slope 1/2 there, as maximum(a, b) gives it in some libraries"


def inputs(rng):
    x = rng.integers(-2, 3, size=(4, 5)).astype(float)
    x[0] = 0.0
    return {"x": x, "w": rng.normal(size=5)}


def forward(x, w):
    return np.maximum(x, 0.0) @ w


def backward(grad_output, x, w):
    slope = np.heaviside(x, 0.5)
    return {"x": grad_output[:, None] * w * slope, "w": grad_output @ np.maximum(x, 0.0)}
