import numpy as np

SOURCE = "MSE as a node in a graph: backward returns 2 * (pred - target) / n and drops the factor it is given"
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = ["pred", "target"]


def inputs(rng):
    return {"pred": rng.normal(size=(4, 2)), "target": rng.normal(size=(4, 2))}


def forward(pred, target):
    return np.mean((pred - target) ** 2)


def backward(grad_output, pred, target):
    d = 2 * (pred - target) / pred.size
    return {"pred": d, "target": -d}


FIX = "d = grad_output * 2 * (pred - target) / pred.size"


def backward_fixed(grad_output, pred, target):
    d = grad_output * 2 * (pred - target) / pred.size
    return {"pred": d, "target": -d}
