import numpy as np

TRICK = (
    "the gradients are views: a transpose, a broadcast (read-only) array, a reshape of the upstream itself"
)


def inputs(rng):
    return {"a": rng.normal(size=(3, 2)), "b": rng.normal(size=(2, 3)), "c": rng.normal(size=6)}


def forward(a, b, c):
    return a.T + b.mean() + c.reshape(2, 3)


def backward(grad_output, a, b, c):
    return {
        "a": grad_output.T,
        "b": np.broadcast_to(grad_output.sum() / b.size, b.shape),
        "c": grad_output.reshape(-1),
    }
