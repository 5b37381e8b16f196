"""GELU in its tanh form: the inner derivative has 0.044715 where 3 * 0.044715 belongs."""

import numpy as np

C = np.sqrt(2 / np.pi)


def inputs(rng):
    return {"x": rng.normal(size=(4, 4))}


def forward(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * x**3)))


def backward(grad_output, x):
    t = np.tanh(C * (x + 0.044715 * x**3))
    return {"x": grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * C * (1 + 0.044715 * x**2))}


def backward_fixed(grad_output, x):
    t = np.tanh(C * (x + 0.044715 * x**3))
    return {"x": grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * C * (1 + 3 * 0.044715 * x**2))}
