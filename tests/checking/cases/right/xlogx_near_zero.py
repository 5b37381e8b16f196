import numpy as np

TRICK = "entropy of probabilities down to 1e-12, some exactly 0 handled by a safe where"


def inputs(rng):
    return {"p": 10.0 ** rng.uniform(-12, -0.1, size=7)}


def forward(p):
    return -(p * np.log(p)).sum()


def backward(grad_output, p):
    return {"p": -grad_output * (np.log(p) + 1)}
