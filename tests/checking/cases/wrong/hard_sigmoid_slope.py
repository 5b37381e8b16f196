import numpy as np

SOURCE = "two conventions of the hard sigmoid mixed: x/6 + 1/2 forward, slope 0.2 backward"
EXPECT = "wrong-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.uniform(-5, 5, size=12)}


def forward(x):
    return np.clip(x / 6 + 0.5, 0, 1)


def backward(grad_output, x):
    return {"x": grad_output * np.where(np.abs(x) < 3, 0.2, 0.0)}


FIX = "np.where(np.abs(x) < 3, 1 / 6, 0)"


def backward_fixed(grad_output, x):
    return {"x": grad_output * np.where(np.abs(x) < 3, 1 / 6, 0.0)}
