import numpy as np

SOURCE = "sqrt's backward 0.5 / sqrt(x) fed with the saved output instead of the input"
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.uniform(0.2, 4.0, size=(3, 3))}


def forward(x):
    return np.sqrt(x)


def backward(grad_output, x):
    out = forward(x)
    return {"x": grad_output * 0.5 / np.sqrt(out)}


FIX = "dx = grad_output * 0.5 / out"


def backward_fixed(grad_output, x):
    return {"x": grad_output * 0.5 / np.sqrt(x)}
