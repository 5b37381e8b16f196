import numpy as np

TRICK = "randomness fixed by a seed argument: forward and backward draw the same mask"


def inputs(rng):
    return {"x": rng.normal(size=(5, 4)), "seed": np.array(rng.integers(2**31))}


def mask(seed, shape):
    return np.random.default_rng(int(seed)).binomial(1, 0.7, size=shape) / 0.7


def forward(x, seed):
    return np.tanh(x) * mask(seed, x.shape)


def backward(grad_output, x, seed):
    return {"x": grad_output * mask(seed, x.shape) * (1 - np.tanh(x) ** 2)}
