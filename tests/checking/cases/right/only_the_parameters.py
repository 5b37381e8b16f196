import numpy as np

TRICK = "the data are a float argument whose gradient is not returned"


def inputs(rng):
    return {"data": rng.normal(size=(6, 3)), "target": rng.normal(size=6), "w": rng.normal(size=3)}


def forward(data, target, w):
    return np.mean((data @ w - target) ** 2)


def backward(grad_output, data, target, w):
    return {"w": grad_output * 2 / len(data) * data.T @ (data @ w - target)}
