import numpy as np


def rnn_forward(x, h0, Wx, Wh, b):
    """x (N, T, D) -> h (N, T, H)"""
    N, T, D = x.shape
    h = np.zeros((N, T, h0.shape[1]))
    prev = h0
    for t in range(T):
        prev = np.tanh(x[:, t] @ Wx + prev @ Wh + b)
        h[:, t] = prev
    return h, (x, h0, Wx, Wh, h)


def rnn_backward(dh, cache):
    x, h0, Wx, Wh, h = cache
    N, T, D = x.shape
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(Wh.shape[0])
    dprev = np.zeros_like(h0)
    for t in reversed(range(T)):
        prev = h[:, t - 1] if t > 0 else h0
        dz = (dh[:, t] + dprev) * (1 - h[:, t] ** 2)
        dx[:, t] = dz @ Wx.T
        dprev = dz @ Wh.T
        dWx += x[:, t].T @ dz
        dWh = prev.T @ dz
        db += dz.sum(axis=0)
    return dx, dprev, dWx, dWh, db
