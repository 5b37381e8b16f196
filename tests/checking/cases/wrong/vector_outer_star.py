import numpy as np

SOURCE = (
    "outer product y = u v^T of equally long vectors: du = sum(g * v) along the wrong side, as if * had"
    " aligned u"
)
EXPECT = "wrong-axis"
ACCEPT = ["transposed"]
WHERE = "u"


def inputs(rng):
    return {"u": rng.normal(size=4), "v": rng.normal(size=4)}


def forward(u, v):
    return np.outer(u, v)


def backward(grad_output, u, v):
    return {"u": (grad_output * v).sum(axis=0), "v": (grad_output * u[:, None]).sum(axis=0)}


FIX = "du = (grad_output * v).sum(axis=1)"


def backward_fixed(grad_output, u, v):
    return {"u": (grad_output * v).sum(axis=1), "v": (grad_output * u[:, None]).sum(axis=0)}
