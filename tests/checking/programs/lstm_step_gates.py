import numpy as np


def sig(v):
    return 1.0 / (1.0 + np.exp(-v))


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x @ Wx + prev_h @ Wh + b
    i = sig(a[:, :H])
    f = sig(a[:, H : 2 * H])
    o = sig(a[:, 2 * H : 3 * H])
    g = np.tanh(a[:, 3 * H :])
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tc = np.tanh(next_c)
    do = dnext_h * tc
    dc = dnext_c + dnext_h * o * (1 - tc**2)
    di = dc * prev_c
    df = dc * g
    dg = dc * i
    dprev_c = dc * f
    da = np.hstack((di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g**2)))
    dx = da @ Wx.T
    dprev_h = da @ Wh.T
    dWx = x.T @ da
    dWh = prev_h.T @ da
    db = da.sum(axis=0)
    return dx, dprev_h, dprev_c, dWx, dWh, db
