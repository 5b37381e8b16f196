"""A course's exercise: a step with its cache, and the loop over it."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x.dot(Wx) + prev_h.dot(Wh) + b
    ai, af, ao, ag = a[:, :H], a[:, H:2*H], a[:, 2*H:3*H], a[:, 3*H:]
    i, f, o, g = sigmoid(ai), sigmoid(af), sigmoid(ao), np.tanh(ag)
    next_c = f * prev_c + i * g
    tanh_c = np.tanh(next_c)
    next_h = o * tanh_c
    cache = (x, prev_h, prev_c, Wx, Wh, i, f, o, g, tanh_c)
    return next_h, next_c, cache


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, tanh_c = cache
    do = dnext_h * tanh_c
    dc = dnext_c + dnext_h * o * (1 - tanh_c**2)
    df = dc * prev_c
    dprev_c = dc * f
    di = dc * g
    dg = dc * i
    dai = di * i * (1 - i)
    daf = df * f * (1 - f)
    dao = do * o * (1 - o)
    dag = dg * (1 - g**2)
    da = np.hstack((dai, daf, dao, dag))
    dx = da.dot(Wx.T)
    dprev_h = da.dot(Wh.T)
    dWx = x.T.dot(da)
    dWh = prev_h.T.dot(da)
    db = da.sum(axis=0)
    return dx, dprev_h, dprev_c, dWx, dWh, db


def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    h = np.zeros((N, T, H))
    prev_h, prev_c = h0, np.zeros((N, H))
    caches = []
    for t in range(T):
        prev_h, prev_c, cache = lstm_step_forward(x[:, t, :], prev_h, prev_c, Wx, Wh, b)
        h[:, t, :] = prev_h
        caches.append(cache)
    return h, caches


def lstm_backward(dh, cache):
    N, T, H = dh.shape
    D = cache[0][0].shape[1]
    dx = np.zeros((N, T, D))
    dWx, dWh, db = np.zeros((D, 4 * H)), np.zeros((H, 4 * H)), np.zeros(4 * H)
    dprev_h, dprev_c = np.zeros((N, H)), np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        dx_t, dprev_h, dprev_c, dWx_t, dWh_t, db_t = lstm_step_backward(dh[:, t, :] + dprev_h, dprev_c, cache[t])
        dx[:, t, :] = dx_t
        dWx += dWx_t
        dWh += dWh_t
        db += db_t
    dh0 = dprev_h
    return dx, dh0, dWx, dWh, db


if __name__ == "__main__":
    np.random.seed(1)
    N, T, D, H = 2, 4, 3, 5
    x, h0 = np.random.randn(N, T, D), np.random.randn(N, H)
    Wx, Wh, b = np.random.randn(D, 4 * H), np.random.randn(H, 4 * H), np.random.randn(4 * H)
    out, cache = lstm_forward(x, h0, Wx, Wh, b)
    dx, dh0, dWx, dWh, db = lstm_backward(np.random.randn(*out.shape), cache)
