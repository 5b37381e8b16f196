import numpy as np

SOURCE = (
    "https://github.com/GuoxiaWang/DOOBNet/issues/6: the focal weight (1-p)^gamma is treated as a "
    "constant in the backward"
)
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "z"
GAMMA = 2.0


def inputs(rng):
    return {"z": rng.normal(size=(4, 3))}


def forward(z):
    p = 1 / (1 + np.exp(-z))
    return -((1 - p) ** GAMMA) * np.log(p)


def backward(grad_output, z):
    p = 1 / (1 + np.exp(-z))
    scale = (1 - p) ** GAMMA
    return {"z": grad_output * scale * (p - 1)}


FIX = "add GAMMA * (1-p)**(GAMMA-1) * log(p) * p * (1-p)"


def backward_fixed(grad_output, z):
    p = 1 / (1 + np.exp(-z))
    scale = (1 - p) ** GAMMA
    return {"z": grad_output * (scale * (p - 1) + GAMMA * scale * np.log(p) * p)}
