"""An LSTM whose weights are objects with a value and a gradient, and one function for one step back."""

import numpy as np

H_size, X_size = 5, 4
z_size = H_size + X_size


class Param:
    def __init__(self, value):
        self.v = value
        self.d = np.zeros_like(value)


class Parameters:
    def __init__(self):
        rng = np.random.RandomState(3)
        self.W_f = Param(rng.randn(H_size, z_size) * 0.3)
        self.b_f = Param(np.zeros((H_size, 1)))
        self.W_i = Param(rng.randn(H_size, z_size) * 0.3)
        self.b_i = Param(np.zeros((H_size, 1)))
        self.W_C = Param(rng.randn(H_size, z_size) * 0.3)
        self.b_C = Param(np.zeros((H_size, 1)))
        self.W_o = Param(rng.randn(H_size, z_size) * 0.3)
        self.b_o = Param(np.zeros((H_size, 1)))
        self.W_v = Param(rng.randn(X_size, H_size) * 0.3)
        self.b_v = Param(np.zeros((X_size, 1)))

    def all(self):
        return [self.W_f, self.W_i, self.W_C, self.W_o, self.W_v, self.b_f, self.b_i, self.b_C, self.b_o, self.b_v]


parameters = Parameters()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def dsigmoid(y):
    return y * (1 - y)


def dtanh(y):
    return 1 - y * y


def forward(x, h_prev, C_prev, p=parameters):
    z = np.vstack((h_prev, x))
    f = sigmoid(np.dot(p.W_f.v, z) + p.b_f.v)
    i = sigmoid(np.dot(p.W_i.v, z) + p.b_i.v)
    C_bar = np.tanh(np.dot(p.W_C.v, z) + p.b_C.v)
    C = f * C_prev + i * C_bar
    o = sigmoid(np.dot(p.W_o.v, z) + p.b_o.v)
    h = o * np.tanh(C)
    v = np.dot(p.W_v.v, h) + p.b_v.v
    y = np.exp(v) / np.sum(np.exp(v))
    return z, f, i, C_bar, C, o, h, v, y


def backward(target, dh_next, dC_next, C_prev, z, f, i, C_bar, C, o, h, v, y, p=parameters):
    dv = np.copy(y)
    dv[target] -= 1
    p.W_v.d += np.dot(dv, h.T)
    p.b_v.d += dv
    dh = np.dot(p.W_v.v.T, dv)
    dh += dh_next
    do = dh * np.tanh(C)
    do = dsigmoid(o) * do
    p.W_o.d += np.dot(do, z.T)
    p.b_o.d += do
    dC = np.copy(dC_next)
    dC += dh * o * dtanh(np.tanh(C))
    dC_bar = dC * i
    dC_bar = dtanh(C_bar) * dC_bar
    p.W_C.d += np.dot(dC_bar, z.T)
    p.b_C.d += dC_bar
    di = dC * C_bar
    di = dsigmoid(i) * di
    p.W_i.d += np.dot(di, z.T)
    p.b_i.d += di
    df = dC * C_prev
    df = dsigmoid(f) * df
    p.W_f.d += np.dot(df, z.T)
    p.b_f.d += df
    dz = np.dot(p.W_f.v.T, df) + np.dot(p.W_i.v.T, di) + np.dot(p.W_C.v.T, dC_bar) + np.dot(p.W_o.v.T, do)
    dh_prev = dz[:H_size, :]
    dC_prev = f * dC
    return dh_prev, dC_prev


def forward_backward(inputs, targets, h_prev, C_prev):
    x_s, z_s, f_s, i_s, C_bar_s, C_s, o_s, h_s, v_s, y_s = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
    h_s[-1] = np.copy(h_prev)
    C_s[-1] = np.copy(C_prev)
    loss = 0
    for t in range(len(inputs)):
        x_s[t] = np.zeros((X_size, 1))
        x_s[t][inputs[t]] = 1
        z_s[t], f_s[t], i_s[t], C_bar_s[t], C_s[t], o_s[t], h_s[t], v_s[t], y_s[t] = forward(x_s[t], h_s[t - 1], C_s[t - 1])
        loss += -np.log(y_s[t][targets[t], 0])
    for param in parameters.all():
        param.d.fill(0)
    dh_next = np.zeros_like(h_s[0])
    dC_next = np.zeros_like(C_s[0])
    for t in reversed(range(len(inputs))):
        dh_next, dC_next = backward(targets[t], dh_next, dC_next, C_s[t - 1], z_s[t], f_s[t], i_s[t], C_bar_s[t], C_s[t], o_s[t], h_s[t], v_s[t], y_s[t])
    return loss, h_s[len(inputs) - 1], C_s[len(inputs) - 1]


loss, h, C = forward_backward([0, 2, 1, 3], [2, 1, 3, 0], np.zeros((H_size, 1)), np.zeros((H_size, 1)))
