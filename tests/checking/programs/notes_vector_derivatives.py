"""The third notes: relu, then one sigmoid unit, dprob/dout written as sigmoid(out) * sigmoid(1 - out)."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def forward(x, W, v):
    h = x @ W
    a = np.maximum(h, 0)
    out = a @ v
    prob = sigmoid(out)
    return prob, (x, W, v, h, a, out)


def backward(dprob, cache):
    x, W, v, h, a, out = cache
    dout = dprob * sigmoid(out) * sigmoid(1 - out)
    dv = a.T @ dout
    da = np.outer(dout, v)
    dh = da * (h > 0)
    dW = x.T @ dh
    dx = dh @ W.T
    return dx, dW, dv
