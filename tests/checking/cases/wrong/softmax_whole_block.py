import numpy as np

SOURCE = "the row sums in the backward of softmax are taken over the whole block"
EXPECT = "wrong-axis"
ACCEPT = ["missing-term"]
WHERE = "z"


def inputs(rng):
    return {"z": rng.normal(size=(3, 4))}


def forward(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def backward(grad_output, z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return {"z": p * (grad_output - (grad_output * p).sum())}


FIX = "(grad_output * p).sum(axis=1, keepdims=True)"


def backward_fixed(grad_output, z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return {"z": p * (grad_output - (grad_output * p).sum(axis=1, keepdims=True))}
