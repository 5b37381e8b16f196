import numpy as np

SOURCE = (
    "a residual of large numbers formed in float32 for 'speed': the difference of nearly equal numbers "
    "loses all digits"
)
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    base = 1e6 * rng.uniform(1, 2, size=8)
    return {"x": base + 0.01 * rng.normal(size=8), "y": base}


def forward(x, y):
    return 0.5 * np.sum((x - y) ** 2)


def backward(grad_output, x, y):
    r = x.astype(np.float32) - y.astype(np.float32)
    return {"x": grad_output * r.astype(float)}


FIX = "r = x - y"


def backward_fixed(grad_output, x, y):
    return {"x": grad_output * (x - y)}
