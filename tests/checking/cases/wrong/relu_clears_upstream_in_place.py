import numpy as np

SOURCE = (
    "in-place ReLU backward: grad_output[x <= 0] = 0 changes the caller's gradient, which the skip "
    "connection still needs"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 3))}


def forward(x, W):
    return x + np.maximum(x @ W, 0)


def backward(grad_output, x, W):
    dz = grad_output
    dz[x @ W <= 0] = 0
    dW = x.T @ dz
    dx = dz @ W.T + grad_output
    return {"x": dx, "W": dW}


FIX = "dz = grad_output * (x @ W > 0), a new array"


def backward_fixed(grad_output, x, W):
    dz = grad_output * (x @ W > 0)
    return {"x": dz @ W.T + grad_output, "W": x.T @ dz}
