import numpy as np

SOURCE = (
    "learned positions added to (batch, time, features): their gradient is summed over time; batch and "
    "time are equally long"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "pos"


def inputs(rng):
    return {"x": rng.normal(size=(3, 3, 4)), "pos": rng.normal(size=(3, 4))}


def forward(x, pos):
    return np.sin(x + pos)


def backward(grad_output, x, pos):
    d = grad_output * np.cos(x + pos)
    return {"x": d, "pos": d.sum(axis=1)}


FIX = "dpos = d.sum(axis=0)"


def backward_fixed(grad_output, x, pos):
    d = grad_output * np.cos(x + pos)
    return {"x": d, "pos": d.sum(axis=0)}
