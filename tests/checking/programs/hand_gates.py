import numpy as np


def gate_forward(x, Wg, Wv):
    g = x @ Wg
    s = 1 / (1 + np.exp(-g))
    v = x @ Wv
    return s * v, g, s, v


def gate_backward(dy, x, Wg, Wv, g, s, v):
    ds = dy * v
    dv = dy * s
    dg = ds * s * (1 - s)
    dWg = x.T @ dg
    dWv = x.T @ dv
    dx = dg @ Wg.T + dv @ Wv.T
    return dx, dWg, dWv
