import numpy as np

SOURCE = (
    "https://github.com/kvfrans/notes/issues/5 (kin), in float32 and with tokens: mean where the bias "
    "gradient is a sum"
)
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor"]
WHERE = "b"


def inputs(rng):
    f = np.float32
    return {"x": rng.normal(size=(3, 5, 4)).astype(f), "b": rng.normal(size=4).astype(f)}


def forward(x, b):
    return np.tanh(x + b)


def backward(grad_output, x, b):
    d = (grad_output * (1 - np.tanh(x + b) ** 2)).astype(x.dtype)
    return {"x": d, "b": d.mean(axis=(0, 1))}


FIX = "db = d.sum(axis=(0, 1))"


def backward_fixed(grad_output, x, b):
    d = (grad_output * (1 - np.tanh(x + b) ** 2)).astype(x.dtype)
    return {"x": d, "b": d.sum(axis=(0, 1))}
