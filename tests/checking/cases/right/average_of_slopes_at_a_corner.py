import numpy as np

TRICK = "the maximum of three lines where all three meet; an average of their slopes is returned"


def inputs(rng):
    return {"t": np.array([0.0, 1.0, -1.0, 0.0, 0.3])}


def forward(t):
    return np.maximum(np.maximum(-2 * t, 0 * t), t)


def backward(grad_output, t):
    slope = np.where(t > 0, 1.0, np.where(t < 0, -2.0, -1 / 3))
    return {"t": grad_output * slope}
