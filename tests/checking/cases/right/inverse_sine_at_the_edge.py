import numpy as np

TRICK = "arcsin within 1e-8 of one and arccosh within 1e-8 of one: a step of 1e-6 leaves the domain"


def inputs(rng):
    d = 10.0 ** rng.uniform(-8, -3, size=5)
    return {"s": 1 - d, "c": 1 + d}


def forward(s, c):
    return np.arcsin(s) - np.arccosh(c)


def backward(grad_output, s, c):
    return {"s": grad_output / np.sqrt((1 - s) * (1 + s)), "c": -grad_output / np.sqrt((c - 1) * (c + 1))}
