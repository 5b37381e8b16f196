import numpy as np

SOURCE = "off by one: the backward's loop over the windows of a 1-D convolution ends one window too early"
EXPECT = "missing-term"
ACCEPT = ["zero-gradient"]
WHERE = ["x", "w"]


def inputs(rng):
    return {"x": rng.normal(size=8), "w": rng.normal(size=3)}


def forward(x, w):
    return np.array([np.dot(x[i : i + 3], w) for i in range(len(x) - 2)])


def backward(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(x) - 3):
        dx[i : i + 3] += grad_output[i] * w
        dw += grad_output[i] * x[i : i + 3]
    return {"x": dx, "w": dw}


FIX = "for i in range(len(x) - 2)"


def backward_fixed(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(len(x) - 2):
        dx[i : i + 3] += grad_output[i] * w
        dw += grad_output[i] * x[i : i + 3]
    return {"x": dx, "w": dw}
