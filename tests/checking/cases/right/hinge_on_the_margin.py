import numpy as np

TRICK = "hinge losses exactly at the margin, where the slope may be anything between 0 and -y"


def inputs(rng):
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    f = y * np.array([1.0, 1.0, 0.25, 3.0, 1.0])
    return {"f": f, "y": y.astype(int)}


def forward(f, y):
    return np.maximum(0, 1 - y * f)


def backward(grad_output, f, y):
    violated = 1 - y * f >= 0
    return {"f": np.where(violated, -y * grad_output, 0.0)}
