import numpy as np

SOURCE = "SiLU/swish by hand: only x * s * (1 - s), the other half of the product rule is missing"
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": 2 * rng.normal(size=(2, 5))}


def forward(x):
    return x / (1 + np.exp(-x))


def backward(grad_output, x):
    s = 1 / (1 + np.exp(-x))
    return {"x": grad_output * x * s * (1 - s)}


FIX = "dx = g * (s + x * s * (1 - s))"


def backward_fixed(grad_output, x):
    s = 1 / (1 + np.exp(-x))
    return {"x": grad_output * (s + x * s * (1 - s))}
