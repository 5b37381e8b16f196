import numpy as np

TRICK = "the position comes from an argmax of one argument, the value from another: the first has no gradient"


def inputs(rng):
    return {"score": rng.normal(size=(4, 3)), "value": rng.normal(size=(4, 3))}


def forward(score, value):
    return value[np.arange(len(value)), score.argmax(axis=1)]


def backward(grad_output, score, value):
    d = np.zeros_like(value)
    d[np.arange(len(value)), score.argmax(axis=1)] = grad_output
    return {"score": np.zeros_like(score), "value": d}
