import numpy as np

TRICK = "float32 weights with float64 data: the weight's gradient comes back in float32"


def inputs(rng):
    return {"x": rng.normal(size=(6, 4)), "W": rng.normal(size=(4, 3)).astype(np.float32)}


def forward(x, W):
    return np.sin(x @ W)


def backward(grad_output, x, W):
    d = grad_output * np.cos(x @ W)
    return {"x": d @ W.T, "W": (x.T @ d).astype(np.float32)}
