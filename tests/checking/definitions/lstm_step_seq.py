import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x @ Wx + prev_h @ Wh + b
    i = sigmoid(a[:, :H])
    f = sigmoid(a[:, H:2*H])
    o = sigmoid(a[:, 2*H:3*H])
    g = np.tanh(a[:, 3*H:])
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    cache = (i, f, o, g, x, prev_h, prev_c, Wx, Wh, next_c)
    return next_h, next_c, cache

def lstm_step_backward(dnext_h, dnext_c, cache):
    i, f, o, g, x, prev_h, prev_c, Wx, Wh, next_c = cache
    tc = np.tanh(next_c)
    do = dnext_h * tc
    dc = dnext_c + dnext_h * o * (1 - tc ** 2)
    df = dc * prev_c
    dprev_c = dc * f
    di = dc * g
    dg = dc * i
    da = np.hstack((di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g ** 2)))
    dx = da @ Wx.T
    dprev_h = da @ Wh.T
    dWx = x.T @ da
    dWh = prev_h.T @ da
    db = da.sum(axis=0)
    return dx, dprev_h, dprev_c, dWx, dWh, db

def lstm_forward(x, h0, Wx, Wh, b):
    N, T, D = x.shape
    H = h0.shape[1]
    h = np.zeros((N, T, H))
    c = np.zeros((N, H))
    prev_h, prev_c = h0, c
    cache = []
    for t in range(T):
        prev_h, prev_c, step_cache = lstm_step_forward(x[:, t], prev_h, prev_c, Wx, Wh, b)
        h[:, t] = prev_h
        cache.append(step_cache)
    return h, cache

def lstm_backward(dh, cache):
    N, T, H = dh.shape
    x = cache[0][4]
    D = x.shape[1]
    dx = np.zeros((N, T, D))
    dWx = np.zeros((D, 4 * H))
    dWh = np.zeros((H, 4 * H))
    db = np.zeros(4 * H)
    dprev_h = np.zeros((N, H))
    dprev_c = np.zeros((N, H))
    for t in range(T - 1, -1, -1):
        dx[:, t], dprev_h, dprev_c, a, bb, cc = lstm_step_backward(dh[:, t] + dprev_h, dprev_c, cache[t])
        dWx += a
        dWh += bb
        db += cc
    return dx, dprev_h, dWx, dWh, db
#WRONG: df = dc * prev_c => df = dc * next_c
#WRONG: lstm_step_backward(dh[:, t] + dprev_h, dprev_c, cache[t]) => lstm_step_backward(dh[:, t] + dprev_h, np.zeros((N, H)), cache[t])
