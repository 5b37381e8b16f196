import numpy as np

TRICK = "a median (two middle values averaged) and a maximum: most entries get a true zero"


def inputs(rng):
    return {"x": rng.normal(size=8)}


def forward(x):
    return np.array([np.median(x), np.max(x)])


def backward(grad_output, x):
    d = np.zeros_like(x)
    order = np.argsort(x)
    d[order[3:5]] += grad_output[0] / 2
    d[order[-1]] += grad_output[1]
    return {"x": d}
