import numpy as np

TRICK = "absolute values at exact zeros, where sign(0) = 0 is one of the allowed slopes"


def inputs(rng):
    x = rng.normal(size=(3, 4))
    x[rng.uniform(size=x.shape) < 0.4] = 0.0
    x[1, 1] = 0.0
    return {"x": x}


def forward(x):
    return np.abs(x).sum(axis=1)


def backward(grad_output, x):
    return {"x": grad_output[:, None] * np.sign(x)}
