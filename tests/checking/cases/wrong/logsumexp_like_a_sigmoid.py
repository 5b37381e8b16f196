import numpy as np

SOURCE = "logsumexp differentiated to p * (1 - p) instead of p"
EXPECT = "wrong-local-derivative"
ACCEPT = ["extra-term"]
WHERE = "a"


def inputs(rng):
    return {"a": rng.normal(size=(4, 3))}


def forward(a):
    top = a.max(axis=1, keepdims=True)
    return (top + np.log(np.exp(a - top).sum(axis=1, keepdims=True)))[:, 0]


def backward(grad_output, a):
    p = np.exp(a - forward(a)[:, None])
    return {"a": grad_output[:, None] * p * (1 - p)}


FIX = "grad_output[:, None] * p"


def backward_fixed(grad_output, a):
    p = np.exp(a - forward(a)[:, None])
    return {"a": grad_output[:, None] * p}
