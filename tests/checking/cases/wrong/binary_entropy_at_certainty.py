import numpy as np

SOURCE = (
    "binary cross-entropy through the probability: (p - y) / (p * (1 - p)) times p * (1 - p) is 0/0 "
    "once the sigmoid has saturated"
)
EXPECT = "dtype-or-overflow"
ACCEPT = ["zero-gradient"]
WHERE = "z"


def inputs(rng):
    return {
        "z": np.array([60.0, -2.0, 45.0, 0.5, -800.0]) + rng.normal(size=5),
        "y": np.array([0, 1, 1, 0, 1]),
    }


def forward(z, y):
    return np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))


def backward(grad_output, z, y):
    with np.errstate(all="ignore"):
        p = 1 / (1 + np.exp(-z))
        dp = grad_output * (p - y) / (p * (1 - p))
        return {"z": dp * p * (1 - p)}


FIX = "dz = grad_output * (p - y)"


def backward_fixed(grad_output, z, y):
    e = np.exp(-np.abs(z))
    p = np.where(z >= 0, 1, e) / (1 + e)
    q = np.where(z >= 0, e, 1) / (1 + e)
    return {"z": grad_output * np.where(y == 1, -q, p)}
