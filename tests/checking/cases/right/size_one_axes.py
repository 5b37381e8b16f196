import numpy as np

TRICK = "axes of size one that are broadcast, kept or dropped: (1, 3, 1) with (2, 1, 4) and a (1,) scale"


def inputs(rng):
    return {"a": rng.normal(size=(1, 3, 1)), "b": rng.normal(size=(2, 1, 4)), "s": rng.normal(size=1)}


def forward(a, b, s):
    return s * (a + b)


def backward(grad_output, a, b, s):
    g = s * grad_output
    return {
        "a": g.sum(axis=(0, 2), keepdims=True),
        "b": g.sum(axis=1, keepdims=True),
        "s": np.sum(grad_output * (a + b)).reshape(1),
    }
