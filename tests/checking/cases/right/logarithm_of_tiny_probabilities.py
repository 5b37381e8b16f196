import numpy as np

TRICK = "log of numbers from 1e-300 to 1: the step must follow the number"


def inputs(rng):
    return {"p": 10.0 ** rng.uniform(-300, 0, size=8)}


def forward(p):
    return -np.log(p)


def backward(grad_output, p):
    return {"p": -grad_output / p}
