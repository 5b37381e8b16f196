import numpy as np

SOURCE = "no zero_grad: parameter gradients live in a module-level buffer and grow with every call"
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "W"
GRADS = {}


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 2))}


def forward(x, W):
    return x @ W


def backward(grad_output, x, W):
    if "W" not in GRADS:
        GRADS["W"] = np.zeros_like(W)
    GRADS["W"] += x.T @ grad_output
    return {"x": grad_output @ W.T, "W": GRADS["W"].copy()}


FIX = "dW = x.T @ grad_output, from nothing at every call"


def backward_fixed(grad_output, x, W):
    return {"x": grad_output @ W.T, "W": x.T @ grad_output}
