import numpy as np

TRICK = "inputs of 1e-150 and gradients of 1e150: an absolute step dwarfs the inputs"


def inputs(rng):
    return {"q": 1e-150 * rng.uniform(1, 2, size=4)}


def forward(q):
    return np.log(q) + 1e-150 / q


def backward(grad_output, q):
    return {"q": grad_output * (1 / q - 1e-150 / q / q)}
