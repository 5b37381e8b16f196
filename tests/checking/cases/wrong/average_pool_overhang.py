import numpy as np

SOURCE = (
    "https://github.com/pytorch/pytorch/issues/198119 (again in "
    "https://github.com/tracel-ai/burn/issues/5604): the last, clipped window of an average pool is "
    "divided by the full kernel size in the backward"
)
EXPECT = "constant-factor"
ACCEPT = ["wrong-local-derivative", "missing-local-derivative"]
WHERE = "x"
K = 3


def inputs(rng):
    return {"x": rng.normal(size=(2, 8))}


def forward(x):
    return np.stack([x[:, i : i + K].mean(axis=1) for i in range(0, x.shape[1], K)], axis=1)


def backward(grad_output, x):
    d = np.zeros_like(x)
    for k, i in enumerate(range(0, x.shape[1], K)):
        d[:, i : i + K] += grad_output[:, k : k + 1] / K
    return {"x": d}


FIX = "divide by the window's own length, x[:, i:i+K].shape[1]"


def backward_fixed(grad_output, x):
    d = np.zeros_like(x)
    for k, i in enumerate(range(0, x.shape[1], K)):
        d[:, i : i + K] += grad_output[:, k : k + 1] / x[:, i : i + K].shape[1]
    return {"x": d}
