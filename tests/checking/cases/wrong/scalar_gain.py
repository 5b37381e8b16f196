import numpy as np  # noqa: F401

SOURCE = (
    "https://github.com/raskr/rust-autograd/issues/38: the gradient of a 0-d variable times an array "
    "keeps the array's shape"
)
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape"]
WHERE = "gain"


def inputs(rng):
    return {"gain": rng.normal(size=()), "x": rng.normal(size=(2, 3))}


def forward(gain, x):
    return gain * x


def backward(grad_output, gain, x):
    return {"gain": grad_output * x, "x": grad_output * gain}


FIX = "dgain = (grad_output * x).sum()"


def backward_fixed(grad_output, gain, x):
    return {"gain": (grad_output * x).sum(), "x": grad_output * gain}
