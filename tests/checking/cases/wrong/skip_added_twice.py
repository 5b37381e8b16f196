import numpy as np

SOURCE = "residual branch: the block's backward adds the skip's gradient, and the caller adds it once more"
EXPECT = "extra-term"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4)), "W": rng.normal(size=(4, 4))}


def branch_backward(g, x, W):
    dz = g * (1 - np.tanh(x @ W) ** 2)
    return g + dz @ W.T, x.T @ dz


def forward(x, W):
    return x + np.tanh(x @ W)


def backward(grad_output, x, W):
    dx, dW = branch_backward(grad_output, x, W)
    return {"x": dx + grad_output, "W": dW}


FIX = "dx alone: the branch has added the skip"


def backward_fixed(grad_output, x, W):
    dx, dW = branch_backward(grad_output, x, W)
    return {"x": dx, "W": dW}
