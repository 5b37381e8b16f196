import numpy as np

TRICK = "|x|**1.5 with x from 1e-12 to 1 and exactly 0: a smooth first derivative, an infinite second one"


def inputs(rng):
    x = 10.0 ** rng.uniform(-12, 0, size=7) * rng.choice([-1, 1], size=7)
    x[3] = 0.0
    return {"x": x}


def forward(x):
    return np.abs(x) ** 1.5


def backward(grad_output, x):
    return {"x": grad_output * 1.5 * np.sqrt(np.abs(x)) * np.sign(x)}
