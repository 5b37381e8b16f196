import numpy as np

SOURCE = "total variation: np.diff's backward adds the right neighbour and forgets the left one"
EXPECT = "missing-term"
ACCEPT = ["overwritten-not-accumulated"]
WHERE = "u"


def inputs(rng):
    return {"u": rng.normal(size=7)}


def forward(u):
    return np.sqrt(np.diff(u) ** 2 + 0.1).sum()


def backward(grad_output, u):
    d = np.diff(u)
    slope = grad_output * d / np.sqrt(d**2 + 0.1)
    du = np.zeros_like(u)
    du[1:] += slope
    return {"u": du}


FIX = "du[:-1] -= slope"


def backward_fixed(grad_output, u):
    d = np.diff(u)
    slope = grad_output * d / np.sqrt(d**2 + 0.1)
    du = np.zeros_like(u)
    du[1:] += slope
    du[:-1] -= slope
    return {"u": du}
