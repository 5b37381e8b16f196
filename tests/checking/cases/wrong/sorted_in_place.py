import numpy as np

SOURCE = (
    "np.ndarray.sort sorts the caller's array: after it the backward can no longer see where the values"
    " came from"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=7), "w": rng.normal(size=7)}


def forward(x, w):
    return np.sort(x) * w


def backward(grad_output, x, w):
    ordered = x
    ordered.sort()
    dw = grad_output * ordered
    dx = np.zeros_like(x)
    dx[np.argsort(x)] = grad_output * w
    return {"x": dx, "w": dw}


FIX = "ordered = np.sort(x)"


def backward_fixed(grad_output, x, w):
    dx = np.zeros_like(x)
    dx[np.argsort(x)] = grad_output * w
    return {"x": dx, "w": grad_output * np.sort(x)}
