import numpy as np

TRICK = (
    "softplus that switches to the identity above 20, as libraries do: the two formulas differ by 2e-9 there"
)


def inputs(rng):
    return {"x": np.array([-30.0, -1.0, 0.0, 19.0, 21.0, 500.0]) + rng.uniform(-0.5, 0.5, size=6)}


def forward(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def backward(grad_output, x):
    s = 1 / (1 + np.exp(-np.clip(x, -700, 20)))
    return {"x": grad_output * np.where(x > 20, 1.0, s)}
