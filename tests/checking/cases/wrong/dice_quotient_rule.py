import numpy as np

SOURCE = (
    "https://github.com/milesial/Pytorch-UNet/issues/35: the quotient rule of the Dice coefficient with"
    " a plus: target * union + inter"
)
EXPECT = "wrong-sign"
ACCEPT = ["wrong-local-derivative"]
WHERE = "pred"


def inputs(rng):
    return {"pred": rng.uniform(0.1, 0.9, size=(3, 4)), "target": rng.integers(0, 2, size=(3, 4))}


def overlap(pred, target):
    return np.dot(pred.reshape(-1), target.reshape(-1)), pred.sum() + target.sum() + 1e-4


def forward(pred, target):
    inter, union = overlap(pred, target)
    return np.asarray(2 * inter / union)


def backward(grad_output, pred, target):
    inter, union = overlap(pred, target)
    return {"pred": grad_output * 2 * (target * union + inter) / (union * union)}


FIX = "2 * (target * union - inter) / union**2"


def backward_fixed(grad_output, pred, target):
    inter, union = overlap(pred, target)
    return {"pred": grad_output * 2 * (target * union - inter) / (union * union)}
