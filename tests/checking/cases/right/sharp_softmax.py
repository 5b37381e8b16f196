import numpy as np

TRICK = "softmax at temperature 1e-4: most of the curvature lies within 1e-4 of the point"
T = 1e-4


def inputs(rng):
    return {"x": 2e-4 * rng.normal(size=(3, 4)) + rng.normal(size=(3, 1))}


def forward(x):
    z = x / T
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def backward(grad_output, x):
    p = forward(x)
    return {"x": p * (grad_output - (p * grad_output).sum(axis=1, keepdims=True)) / T}
