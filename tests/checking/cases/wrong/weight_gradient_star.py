import numpy as np  # noqa: F401

SOURCE = "'dW = x * delta' carried over from the single-weight derivation; shapes agree by chance"
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = ["transposed"]
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(4, 4)), "W": rng.normal(size=(4, 4)), "t": rng.normal(size=(4, 4))}


def forward(x, W, t):
    return 0.5 * ((x @ W - t) ** 2).sum(axis=1)


def backward(grad_output, x, W, t):
    delta = (x @ W - t) * grad_output[:, None]
    return {"x": delta @ W.T, "W": x * delta}


FIX = "dW = x.T @ delta"


def backward_fixed(grad_output, x, W, t):
    delta = (x @ W - t) * grad_output[:, None]
    return {"x": delta @ W.T, "W": x.T @ delta}
