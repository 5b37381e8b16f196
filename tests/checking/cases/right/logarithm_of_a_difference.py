import numpy as np

TRICK = "cancellation: log(1 - exp(-x)) for x from 1e-8 up, with expm1 in both passes"


def inputs(rng):
    return {"x": 10.0 ** rng.uniform(-8, 2, size=9)}


def forward(x):
    return np.log(-np.expm1(-x))


def backward(grad_output, x):
    with np.errstate(over="ignore"):
        return {"x": grad_output / np.expm1(x)}
