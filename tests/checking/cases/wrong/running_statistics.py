import numpy as np

SOURCE = "batch norm in evaluation mode whose backward first updates the running variance it divides by"
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "x"
MOMENTUM = 0.5


def inputs(rng):
    return {
        "x": rng.normal(size=(5, 3)),
        "running_mean": rng.normal(size=3),
        "running_var": rng.uniform(0.5, 2, size=3),
    }


def forward(x, running_mean, running_var):
    return (x - running_mean) / np.sqrt(running_var + 1e-5)


def backward(grad_output, x, running_mean, running_var):
    running_var *= 1 - MOMENTUM
    running_var += MOMENTUM * x.var(axis=0)
    return {"x": grad_output / np.sqrt(running_var + 1e-5)}


FIX = "no update in the backward pass"


def backward_fixed(grad_output, x, running_mean, running_var):
    return {"x": grad_output / np.sqrt(running_var + 1e-5)}
