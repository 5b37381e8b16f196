"""x to the power y: the exponent's gradient takes the logarithm of the exponent."""

import numpy as np


def inputs(rng):
    return {"x": rng.uniform(0.5, 2, size=(3, 4)), "y": rng.uniform(0.5, 3, size=(3, 4))}


def forward(x, y):
    return x**y


def backward(grad_output, x, y):
    return {"x": grad_output * y * x ** (y - 1), "y": grad_output * np.log(y) * x**y}


def backward_fixed(grad_output, x, y):
    return {"x": grad_output * y * x ** (y - 1), "y": grad_output * np.log(x) * x**y}
