import numpy as np

SOURCE = "Fahlman's trick: 0.1 is added to the sigmoid's slope so that saturated units learn"
EXPECT = "extra-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "z"


def inputs(rng):
    return {"z": 6 * rng.normal(size=(3, 4)), "w": rng.normal(size=4)}


def forward(z, w):
    return (1 / (1 + np.exp(-z))) @ w


def backward(grad_output, z, w):
    s = 1 / (1 + np.exp(-z))
    slope = s * (1 - s) + 0.1
    return {"z": grad_output[:, None] * w * slope, "w": s.T @ grad_output}


FIX = "slope = s * (1 - s)"


def backward_fixed(grad_output, z, w):
    s = 1 / (1 + np.exp(-z))
    slope = s * (1 - s)
    return {"z": grad_output[:, None] * w * slope, "w": s.T @ grad_output}
