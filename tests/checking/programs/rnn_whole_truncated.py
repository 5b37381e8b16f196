import numpy as np


def rnn_forward(x, h0, Wx, Wh, b):
    h, prev = [], h0
    for t in range(x.shape[0]):
        prev = np.tanh(x[t] @ Wx + prev @ Wh + b)
        h.append(prev)
    return np.stack(h), (x, h0, Wx, Wh, h)


def rnn_backward(dh, cache):
    x, h0, Wx, Wh, h = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros(Wh.shape[1])
    for t in range(len(h) - 1, -1, -1):
        before = h0 if t == 0 else h[t - 1]
        dz = dh[t] * (1 - h[t] ** 2)
        dx[t] = dz @ Wx.T
        dWx += x[t].T @ dz
        dWh += before.T @ dz
        db += dz.sum(0)
        dh0 = dz @ Wh.T
    return dx, dh0, dWx, dWh, db
