import numpy as np

TRICK = "sums over several axes taken one after the other, in another order than the forward's"


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 2, 2)), "w": rng.normal(size=(3, 1, 2))}


def forward(x, w):
    return (x * w).sum(axis=(1, 3))


def backward(grad_output, x, w):
    g = grad_output[:, None, :, None]
    dw = (g * x).sum(axis=2, keepdims=True).sum(axis=0)
    return {"x": np.ones_like(x) * g * w, "w": dw}
