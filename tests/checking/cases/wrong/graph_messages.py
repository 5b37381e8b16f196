import numpy as np

SOURCE = "graph convolution: d[sources] += messages drops all but one message of a node that sends several"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "h"
SRC = np.array([0, 0, 1, 2, 2, 2, 3])
DST = np.array([1, 2, 2, 0, 1, 3, 0])


def inputs(rng):
    return {"h": rng.normal(size=(4, 2)), "w": rng.normal(size=7)}


def forward(h, w):
    out = np.zeros_like(h)
    np.add.at(out, DST, w[:, None] * h[SRC])
    return out


def backward(grad_output, h, w):
    g = grad_output[DST]
    dh = np.zeros_like(h)
    dh[SRC] += w[:, None] * g
    return {"h": dh, "w": (g * h[SRC]).sum(axis=1)}


FIX = "np.add.at(dh, SRC, w[:, None] * g)"


def backward_fixed(grad_output, h, w):
    g = grad_output[DST]
    dh = np.zeros_like(h)
    np.add.at(dh, SRC, w[:, None] * g)
    return {"h": dh, "w": (g * h[SRC]).sum(axis=1)}
