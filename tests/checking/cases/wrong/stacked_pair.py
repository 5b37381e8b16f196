import numpy as np

SOURCE = (
    "two arrays stacked along a new first axis, their gradients picked along the second; a pair of "
    "pairs keeps quiet"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = ["left", "right"]


def inputs(rng):
    return {
        "left": rng.normal(size=(2, 3)),
        "right": rng.normal(size=(2, 3)),
        "w": rng.normal(size=(2, 2, 3)),
    }


def forward(left, right, w):
    return np.stack([left, right]) * w


def backward(grad_output, left, right, w):
    g = grad_output * w
    dleft, dright = g[:, 0], g[:, 1]
    return {"left": dleft, "right": dright, "w": grad_output * np.stack([left, right])}


FIX = "dleft, dright = g[0], g[1]"


def backward_fixed(grad_output, left, right, w):
    g = grad_output * w
    return {"left": g[0], "right": g[1], "w": grad_output * np.stack([left, right])}
