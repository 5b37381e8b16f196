"""log-sum-exp: the weights are taken without their normalisation."""

import numpy as np


def inputs(rng):
    return {"x": rng.normal(size=(4, 5))}


def forward(x):
    m = x.max(axis=1)
    return m + np.log(np.exp(x - m[:, None]).sum(axis=1))


def backward(grad_output, x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"x": grad_output[:, None] * e}


def backward_fixed(grad_output, x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"x": grad_output[:, None] * e / e.sum(axis=1, keepdims=True)}
