import numpy as np

SOURCE = (
    "PReLU with one slope per channel in NCHW: the slope's gradient is summed as if channels came last;"
    " as many channels as columns"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "slope"


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 2, 3)), "slope": rng.uniform(0.05, 0.4, size=3)}


def forward(x, slope):
    return np.where(x > 0, x, slope[:, None, None] * x)


def backward(grad_output, x, slope):
    a = slope[None, :, None, None]
    dx = grad_output * np.where(x > 0, 1.0, a)
    dslope = np.where(x > 0, 0.0, grad_output * x).sum(axis=(0, 1, 2))
    return {"x": dx, "slope": dslope}


FIX = "dslope = (...).sum(axis=(0, 2, 3))"


def backward_fixed(grad_output, x, slope):
    a = slope[None, :, None, None]
    dx = grad_output * np.where(x > 0, 1.0, a)
    dslope = np.where(x > 0, 0.0, grad_output * x).sum(axis=(0, 2, 3))
    return {"x": dx, "slope": dslope}
