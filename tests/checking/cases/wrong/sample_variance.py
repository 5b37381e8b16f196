import numpy as np

SOURCE = "variance with Bessel's correction forward (n - 1), its derivative divided by n"
EXPECT = "constant-factor"
ACCEPT = ["batch-mean-vs-sum"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(5, 3))}


def forward(x):
    return np.var(x, axis=0, ddof=1)


def backward(grad_output, x):
    return {"x": grad_output * 2 * (x - x.mean(axis=0)) / len(x)}


FIX = "/ (len(x) - 1)"


def backward_fixed(grad_output, x):
    return {"x": grad_output * 2 * (x - x.mean(axis=0)) / (len(x) - 1)}
