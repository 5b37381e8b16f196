import numpy as np

SOURCE = "softplus with a stable forward, and exp(x) / (1 + exp(x)) as its slope: inf / inf for large x"
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": np.array([-800.0, -3.0, 0.0, 4.0, 720.0, 1000.0]) + rng.normal(size=6)}


def forward(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def backward(grad_output, x):
    with np.errstate(over="ignore", invalid="ignore"):
        return {"x": grad_output * np.exp(x) / (1 + np.exp(x))}


FIX = "exp(min(x, 0)) / (1 + exp(-|x|))"


def backward_fixed(grad_output, x):
    return {"x": grad_output * np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))}
