import numpy as np

TRICK = "exp of up to 700: values and slopes of 1e300 beside others of 1e-300"


def inputs(rng):
    return {"x": np.array([700.0, -690.0, 300.0, 1.0, -0.5]) + rng.uniform(-1, 1, size=5)}


def forward(x):
    return np.exp(x)


def backward(grad_output, x):
    return {"x": grad_output * np.exp(x)}
