import numpy as np

SOURCE = "tanh's derivative remembered like the sigmoid's: 1 - t instead of 1 - t**2"
EXPECT = "wrong-local-derivative"
ACCEPT = []
WHERE = ["x", "w"]


def inputs(rng):
    return {"x": rng.normal(size=(3, 4)), "w": rng.normal(size=(4,))}


def forward(x, w):
    return np.tanh(x * w)


def backward(grad_output, x, w):
    t = np.tanh(x * w)
    d = grad_output * (1 - t)
    return {"x": d * w, "w": (d * x).sum(axis=0)}


FIX = "d = grad_output * (1 - t**2)"


def backward_fixed(grad_output, x, w):
    t = np.tanh(x * w)
    d = grad_output * (1 - t**2)
    return {"x": d * w, "w": (d * x).sum(axis=0)}
