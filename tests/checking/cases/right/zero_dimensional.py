import numpy as np

TRICK = "0-d everywhere: scalars in, scalar out, NumPy scalars handed back as gradients"


def inputs(rng):
    return {"a": np.array(rng.uniform(1, 2)), "b": np.array(rng.normal())}


def forward(a, b):
    return np.float64(a**b)


def backward(grad_output, a, b):
    y = a**b
    return {"a": grad_output * b * y / a, "b": grad_output * y * np.log(a)}
