import numpy as np

TRICK = "np.take with negative and repeated indices along the second axis"


def inputs(rng):
    return {"x": rng.normal(size=(3, 5)), "idx": np.array([-1, 0, 4, -5, 2, 2])}


def forward(x, idx):
    return np.take(x, idx, axis=1)


def backward(grad_output, x, idx):
    d = np.zeros_like(x)
    for k, j in enumerate(idx):
        d[:, j] += grad_output[:, k]
    return {"x": d}
