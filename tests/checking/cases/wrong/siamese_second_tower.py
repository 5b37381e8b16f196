import numpy as np

SOURCE = "siamese network: both towers share W, the second tower's gradient overwrites the first's"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "W"


def inputs(rng):
    return {"left": rng.normal(size=(4, 3)), "right": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2))}


def forward(left, right, W):
    return ((np.tanh(left @ W) - np.tanh(right @ W)) ** 2).sum(axis=1)


def tower(g, x, W):
    dz = g * (1 - np.tanh(x @ W) ** 2)
    return dz @ W.T, x.T @ dz


def backward(grad_output, left, right, W):
    diff = 2 * grad_output[:, None] * (np.tanh(left @ W) - np.tanh(right @ W))
    dleft, dW = tower(diff, left, W)
    dright, dW = tower(-diff, right, W)
    return {"left": dleft, "right": dright, "W": dW}


FIX = "dright, dW_right = tower(-diff, right, W); dW = dW + dW_right"


def backward_fixed(grad_output, left, right, W):
    diff = 2 * grad_output[:, None] * (np.tanh(left @ W) - np.tanh(right @ W))
    dleft, dW1 = tower(diff, left, W)
    dright, dW2 = tower(-diff, right, W)
    return {"left": dleft, "right": dright, "W": dW1 + dW2}
