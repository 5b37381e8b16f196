import numpy as np

SOURCE = (
    "np.hypot forward, x / sqrt(x*x + y*y) backward: the squares overflow at 1e200 (kin: "
    "https://github.com/JuliaDiff/ForwardDiff.jl/pull/669)"
)
EXPECT = "dtype-or-overflow"
ACCEPT = ["zero-gradient"]
WHERE = ["x", "y"]


def inputs(rng):
    return {"x": 1e200 * rng.uniform(1, 2, size=4), "y": 1e200 * rng.uniform(1, 2, size=4)}


def forward(x, y):
    return np.hypot(x, y)


def backward(grad_output, x, y):
    with np.errstate(over="ignore"):
        r = np.sqrt(x * x + y * y)
        return {"x": grad_output * x / r, "y": grad_output * y / r}


FIX = "r = np.hypot(x, y)"


def backward_fixed(grad_output, x, y):
    r = np.hypot(x, y)
    return {"x": grad_output * (x / r), "y": grad_output * (y / r)}
