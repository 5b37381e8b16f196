"""Two branches added: the second one's gradient is computed and never added."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "A": rng.normal(size=(3, 2)), "B": rng.normal(size=(3, 2))}


def forward(x, A, B):
    return np.sin(x @ A) + np.cos(x @ B)


def backward(grad_output, x, A, B):
    da = grad_output * np.cos(x @ A)
    db = -grad_output * np.sin(x @ B)  # noqa: F841
    dx = da @ A.T
    dB = np.zeros_like(B)
    return {"x": dx, "A": x.T @ da, "B": dB}


def backward_fixed(grad_output, x, A, B):
    da = grad_output * np.cos(x @ A)
    db = -grad_output * np.sin(x @ B)
    return {"x": da @ A.T + db @ B.T, "A": x.T @ da, "B": x.T @ db}
