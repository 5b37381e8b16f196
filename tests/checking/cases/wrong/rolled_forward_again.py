import numpy as np

SOURCE = "np.roll undone with the same shift instead of the opposite one"
EXPECT = "transposed"
ACCEPT = ["wrong-sign", "wrong-evaluation-point", "wrong-position"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(2, 5)), "c": rng.normal(size=5)}


def forward(x, c):
    return c * np.roll(x, 2, axis=1)


def backward(grad_output, x, c):
    return {"x": np.roll(c * grad_output, 2, axis=1), "c": (grad_output * np.roll(x, 2, axis=1)).sum(0)}


FIX = "np.roll(c * grad_output, -2, axis=1)"


def backward_fixed(grad_output, x, c):
    return {"x": np.roll(c * grad_output, -2, axis=1), "c": (grad_output * np.roll(x, 2, axis=1)).sum(0)}
