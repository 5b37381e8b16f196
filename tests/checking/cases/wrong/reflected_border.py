import numpy as np

SOURCE = (
    "reflection padding: the backward cuts the border off instead of folding it back onto the pixels it"
    " mirrors"
)
EXPECT = "missing-term"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(2, 5)), "w": rng.normal(size=(2, 9))}


def forward(x, w):
    return np.pad(x, ((0, 0), (2, 2)), mode="reflect") * w


def backward(grad_output, x, w):
    g = grad_output * w
    return {"x": g[:, 2:-2], "w": grad_output * np.pad(x, ((0, 0), (2, 2)), mode="reflect")}


FIX = "add g[:, :2] and g[:, -2:] to the mirrored columns"


def backward_fixed(grad_output, x, w):
    g = grad_output * w
    dx = g[:, 2:-2].copy()
    dx[:, 1:3] += g[:, 1::-1]
    dx[:, -3:-1] += g[:, :-3:-1]
    return {"x": dx, "w": grad_output * np.pad(x, ((0, 0), (2, 2)), mode="reflect")}
