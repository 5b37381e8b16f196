import numpy as np

TRICK = "where with a safe inner value: log(x) for positive x, 0 elsewhere; a single where would give NaN"


def inputs(rng):
    return {"x": np.array([-3.0, -1e-3, 0.5, 2.0, 1e-9, -7.0]) * rng.uniform(0.5, 1.5)}


def forward(x):
    ok = x > 0
    return np.where(ok, np.log(np.where(ok, x, 1.0)), 0.0)


def backward(grad_output, x):
    ok = x > 0
    return {"x": np.where(ok, grad_output / np.where(ok, x, 1.0), 0.0)}
