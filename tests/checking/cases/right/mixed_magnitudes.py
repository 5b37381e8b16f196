import numpy as np

TRICK = "sums of terms from 1e-8 to 1e12: small gradients beside huge ones, both exact"


def inputs(rng):
    return {"x": rng.normal(size=5), "scale": 10.0 ** np.array([12.0, 6.0, 0.0, -4.0, -8.0])}


def forward(x, scale):
    return np.cumsum(x * scale)


def backward(grad_output, x, scale):
    tail = np.cumsum(grad_output[::-1])[::-1]
    return {"x": tail * scale, "scale": tail * x}
