import numpy as np

TRICK = "piecewise constant: floor and round have the gradient 0 between their steps"


def inputs(rng):
    return {
        "x": rng.integers(-3, 4, size=(3, 4)) + rng.uniform(0.1, 0.4, size=(3, 4)),
        "s": rng.normal(size=4),
    }


def forward(x, s):
    return np.floor(x) * s + np.rint(x)


def backward(grad_output, x, s):
    return {"x": np.zeros_like(x), "s": (grad_output * np.floor(x)).sum(axis=0)}
