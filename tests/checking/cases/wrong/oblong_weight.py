import numpy as np

SOURCE = "dW = delta.T @ x for a layer x @ W of unequal sizes: the gradient is (out, in) where W is (in, out)"
EXPECT = "transposed"
ACCEPT = ["wrong-shape"]
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(6, 4)), "W": rng.normal(size=(4, 2)), "b": rng.normal(size=2)}


def forward(x, W, b):
    return 1 / (1 + np.exp(-(x @ W + b)))


def backward(grad_output, x, W, b):
    y = forward(x, W, b)
    delta = grad_output * y * (1 - y)
    return {"x": delta @ W.T, "W": delta.T @ x, "b": delta.sum(axis=0)}


FIX = "dW = x.T @ delta"


def backward_fixed(grad_output, x, W, b):
    y = forward(x, W, b)
    delta = grad_output * y * (1 - y)
    return {"x": delta @ W.T, "W": x.T @ delta, "b": delta.sum(axis=0)}
