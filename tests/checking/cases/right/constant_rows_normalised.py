import numpy as np

TRICK = "layer norm of rows whose entries are all equal: slopes of 1e5 that bend within 1e-5 of the point"
EPS = 1e-10


def inputs(rng):
    x = np.repeat(rng.normal(size=(3, 1)), 4, axis=1)
    x[2] = 0.0
    return {"x": x}


def forward(x):
    c = x - x.mean(axis=1, keepdims=True)
    return c / np.sqrt((c**2).mean(axis=1, keepdims=True) + EPS)


def backward(grad_output, x):
    c = x - x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((c**2).mean(axis=1, keepdims=True) + EPS)
    y = c * r
    g = grad_output
    return {"x": r * (g - g.mean(axis=1, keepdims=True) - y * (g * y).mean(axis=1, keepdims=True))}
