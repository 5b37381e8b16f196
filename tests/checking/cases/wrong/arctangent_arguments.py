import numpy as np

SOURCE = "arctan2 takes (y, x): the gradients are derived for (x, y) and returned by position"
EXPECT = "swapped-gradients"
ACCEPT = []
WHERE = ["y", "x"]


def inputs(rng):
    return {"y": rng.uniform(0.5, 2, size=5), "x": rng.uniform(0.5, 2, size=5)}


def forward(y, x):
    return np.arctan2(y, x)


def backward(grad_output, y, x):
    s = grad_output / (x**2 + y**2)
    first, second = -y * s, x * s
    return {"y": first, "x": second}


FIX = "dy = x * s, dx = -y * s"


def backward_fixed(grad_output, y, x):
    s = grad_output / (x**2 + y**2)
    return {"y": x * s, "x": -y * s}
