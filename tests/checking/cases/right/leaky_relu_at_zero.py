import numpy as np

TRICK = "leaky ReLU in a small network whose first row of pre-activations is exactly zero"


def inputs(rng):
    x = rng.normal(size=(4, 3))
    x[0] = 0.0
    return {"x": x, "W": rng.normal(size=(3, 2))}


def forward(x, W):
    z = x @ W
    return np.where(z > 0, z, 0.1 * z)


def backward(grad_output, x, W):
    dz = grad_output * np.where(x @ W > 0, 1.0, 0.1)
    return {"x": dz @ W.T, "W": x.T @ dz}
