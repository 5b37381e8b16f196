import numpy as np

SOURCE = "Huber loss: the linear part's derivative is +delta on both sides, the residual's sign is lost"
EXPECT = "wrong-local-derivative"
ACCEPT = ["wrong-sign", "missing-local-derivative"]
WHERE = "pred"
DELTA = 0.5


def inputs(rng):
    return {"pred": 2 * rng.normal(size=10), "target": rng.normal(size=10)}


def forward(pred, target):
    r = np.abs(pred - target)
    return np.where(r <= DELTA, 0.5 * r**2, DELTA * (r - 0.5 * DELTA)).mean()


def backward(grad_output, pred, target):
    r = pred - target
    slope = np.where(np.abs(r) <= DELTA, r, DELTA)
    return {"pred": grad_output * slope / r.size}


FIX = "DELTA * np.sign(r) in the tails"


def backward_fixed(grad_output, pred, target):
    r = pred - target
    slope = np.where(np.abs(r) <= DELTA, r, DELTA * np.sign(r))
    return {"pred": grad_output * slope / r.size}
