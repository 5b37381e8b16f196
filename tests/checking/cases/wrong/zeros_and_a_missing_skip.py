import numpy as np

SOURCE = "ReLU block on sparse inputs (many exact zeros, so kinks everywhere) that loses its skip connection"
EXPECT = "missing-term"
ACCEPT = ["overwritten-not-accumulated"]
WHERE = "x"


def inputs(rng):
    x = rng.normal(size=(4, 5))
    x[rng.uniform(size=x.shape) < 0.4] = 0.0
    x[0, 0] = 0.0
    return {"x": x, "a": rng.uniform(0.5, 2.0, size=5)}


def forward(x, a):
    return x + a * np.maximum(x, 0)


def backward(grad_output, x, a):
    return {"x": grad_output * a * (x > 0), "a": (grad_output * np.maximum(x, 0)).sum(axis=0)}


FIX = "dx = grad_output * (1 + a * (x > 0))"


def backward_fixed(grad_output, x, a):
    return {"x": grad_output * (1 + a * (x > 0)), "a": (grad_output * np.maximum(x, 0)).sum(axis=0)}
