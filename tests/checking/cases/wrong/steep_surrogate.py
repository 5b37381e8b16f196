import numpy as np

SOURCE = (
    "https://github.com/jeshraghian/snntorch/pull/433: exp(-k*u) / (1 + exp(-k*u))**2 overflows to NaN "
    "a little below the threshold when k is 25"
)
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "u"
K = 25.0


def inputs(rng):
    return {"u": np.array([-40.0, -5.0, -0.3, 0.0, 0.2, 6.0]) + 0.1 * rng.normal(size=6)}


def forward(u):
    z = K * u
    return np.where(z >= 0, 1 / (1 + np.exp(-np.abs(z))), np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))))


def backward(grad_output, u):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(-K * u)
        return {"u": grad_output * K * e / (1 + e) ** 2}


FIX = "e = np.exp(-K * np.abs(u)): the slope is symmetric"


def backward_fixed(grad_output, u):
    e = np.exp(-K * np.abs(u))
    return {"u": grad_output * K * e / (1 + e) ** 2}
