import numpy as np

TRICK = "batch normalisation over a single example: the output is beta whatever x is"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(1, 3)), "gamma": rng.normal(size=3), "beta": rng.normal(size=3)}


def forward(x, gamma, beta):
    return gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + EPS) + beta


def backward(grad_output, x, gamma, beta):
    return {"x": np.zeros_like(x), "gamma": np.zeros_like(gamma), "beta": grad_output[0]}
