import numpy as np

TRICK = "the mean of 600 float32 numbers: each gradient is below float32's resolution of the mean"


def inputs(rng):
    return {"x": (10 + rng.normal(size=600)).astype(np.float32)}


def forward(x):
    return x.mean()


def backward(grad_output, x):
    return {"x": np.full_like(x, grad_output / x.size)}
