import numpy as np

SOURCE = "np.where(c, a, b): the two gradients are masked correctly and returned under each other's name"
EXPECT = "swapped-gradients"
ACCEPT = []
WHERE = ["a", "b"]


def inputs(rng):
    return {
        "cond": rng.integers(0, 2, size=(3, 5)),
        "a": rng.normal(size=(3, 5)),
        "b": rng.normal(size=(3, 5)),
    }


def forward(cond, a, b):
    return np.where(cond, a, b)


def backward(grad_output, cond, a, b):
    taken, other = np.where(cond, grad_output, 0), np.where(cond, 0, grad_output)
    return {"a": other, "b": taken}


FIX = 'a gets the part where cond holds: {"a": taken, "b": other}'


def backward_fixed(grad_output, cond, a, b):
    taken, other = np.where(cond, grad_output, 0), np.where(cond, 0, grad_output)
    return {"a": taken, "b": other}
