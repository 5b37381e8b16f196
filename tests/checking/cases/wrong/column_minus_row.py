import numpy as np

SOURCE = (
    "NumPy broadcasting trap: a (n, 1) prediction minus a (n,) target becomes (n, n) in the backward only"
)
EXPECT = "wrong-shape"
ACCEPT = []
WHERE = "pred"


def inputs(rng):
    return {"pred": rng.normal(size=(5, 1)), "target": rng.normal(size=5)}


def forward(pred, target):
    return np.mean((pred[:, 0] - target) ** 2)


def backward(grad_output, pred, target):
    return {"pred": grad_output * 2 * (pred - target) / len(target)}


FIX = "2 * (pred - target[:, None]) / n"


def backward_fixed(grad_output, pred, target):
    return {"pred": grad_output * 2 * (pred - target[:, None]) / len(target)}
