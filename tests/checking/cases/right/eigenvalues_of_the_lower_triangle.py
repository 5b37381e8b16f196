import numpy as np

TRICK = (
    "np.linalg.eigvalsh of a symmetric matrix looks at the lower triangle: off-diagonal slopes double, "
    "the rest vanish"
)


def inputs(rng):
    r = rng.normal(size=(4, 4))
    return {"A": (r + r.T) / 2 + np.diag([0.0, 3.0, 6.0, 9.0])}


def forward(A):
    return np.linalg.eigvalsh(A)


def backward(grad_output, A):
    _, V = np.linalg.eigh(A)
    full = (V * grad_output) @ V.T
    return {"A": np.tril(full) + np.tril(full, -1)}
