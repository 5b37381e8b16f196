import numpy as np

TRICK = "batch normalisation of a batch of two: the output is nearly +-1 and x's gradient nearly zero"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(2, 4)), "g": rng.uniform(0.5, 2, size=4)}


def forward(x, g):
    return g * (x - x.mean(0)) / np.sqrt(x.var(0) + EPS)


def backward(grad_output, x, g):
    s = np.sqrt(x.var(0) + EPS)
    xh = (x - x.mean(0)) / s
    d = grad_output * g
    return {"x": (d - d.mean(0) - xh * (d * xh).mean(0)) / s, "g": (grad_output * xh).sum(0)}
