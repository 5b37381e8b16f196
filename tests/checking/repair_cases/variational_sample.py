"""The reparametrised sample mu + exp(log_var / 2) * noise: the half is forgotten."""

import numpy as np


def inputs(rng):
    return {
        "mu": rng.normal(size=(3, 4)),
        "log_var": rng.normal(size=(3, 4)),
        "seed": np.array(rng.integers(0, 1000)),
    }


def noise(seed, shape):
    return np.random.default_rng(int(seed)).normal(size=shape)


def forward(mu, log_var, seed):
    return mu + np.exp(log_var / 2) * noise(seed, mu.shape)


def backward(grad_output, mu, log_var, seed):
    return {"mu": grad_output.copy(), "log_var": grad_output * np.exp(log_var / 2) * noise(seed, mu.shape)}


def backward_fixed(grad_output, mu, log_var, seed):
    return {
        "mu": grad_output.copy(),
        "log_var": grad_output * 0.5 * np.exp(log_var / 2) * noise(seed, mu.shape),
    }
