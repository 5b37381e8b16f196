"""Recurrence: what is carried from each time to the next, forward, and its gradient from each time to the one before.

N rows, T times, D features of the input, H of the state. A state has one time more than x: h[:, 0] is the start, 0, and
h[:, t + 1] what time t makes of h[:, t] and x[:, t]. Only what needs the time before is computed in the loop.
"""

import numpy as np

from handgrad.rules.primitives import join_last, rows, sigmoid, split_last, truncated
from handgrad.rules.rule import rule

__all__ = ["elman", "gru", "last_time", "lstm"]


@rule("N T D, D H, H H, H -> N T H")
def elman(x, W, U, b, *, truncate=None):
    """Carry a state through time: ``h_t = tanh(x_t W + h_(t-1) U + b)``.

    Shapes
        x (N, T, D), W (D, H), U (H, H), b (H,) -> y (N, T, H): the states of all times, the start left out.
    Gradient
        with dz_t = (dy_t + dz_(t+1) Uᵀ) (1 - h_t²): dW = Σ_t x_tᵀ dz_t, dU = Σ_t h_(t-1)ᵀ dz_t, db = Σ_t dz_t. Truncated,
        with segments of k = ``truncate`` times from the first on: dz_(t+1) Uᵀ is left out where t + 1 begins a segment, so
        that dy_t reaches the times of its own segment, k at most, and not those before.
    Differs
        PyTorch's RNN has two biases, of which b is the sum, and W (H, D), U (H, H) transposed.
    Source
        Elman, Finding Structure in Time, Cognitive Science 14 (1990); Werbos, Backpropagation Through Time (1990);
        truncation: Williams and Peng, Neural Computation 2 (1990), whose BPTT(h; h') this is with h = h' = k.
    """
    z = x @ W + b  # the input's part, of all times in one product: only h needs the time before
    h = np.zeros((x.shape[0], x.shape[1] + 1, U.shape[0]), x.dtype)  # the start is 0
    for t in range(x.shape[1]):
        h[:, t + 1] = np.tanh(z[:, t] + h[:, t] @ U)
    y = h[:, 1:]
    return y


@elman.backward
def elman_backward(dy, x, W, U, h, *, truncate):
    dh = np.zeros_like(h)  # nothing follows the last time
    dz = np.zeros_like(dy)
    for t in reversed(range(x.shape[1])):
        dh[:, t + 1] += dy[:, t]  # h was put out, and carried on: both add up
        dz[:, t] = dh[:, t + 1] * (1 - h[:, t + 1] ** 2)  # the derivative of tanh is 1 - tanh²
        dh[:, t] = truncated(dz[:, t] @ U.T, t, truncate)  # carried to the time before
    dx = dz @ W.T
    dW = rows(x).T @ rows(dz)  # the same W serves every row and time: they add up
    dU = rows(h[:, :-1]).T @ rows(dz)  # U mapped the state before each time
    db = rows(dz).sum(axis=0)
    return dx, dW, dU, db


@rule("N T D, D G, H G, G -> N T H", G="4 * H")
def lstm(x, W, U, b, *, truncate=None):
    """Carry a state and a cell through time; gates decide what enters the cell, what stays in it, and what leaves it.

    Shapes
        x (N, T, D), W (D, 4 H), U (H, 4 H), b (4 H,) -> y (N, T, H): the states of all times, the start left out. In W, U
        and b the columns of i, f, g and o stand side by side, in PyTorch's order.
    Formula
        i, f, o = σ(x_t W + h_(t-1) U + b), g = tanh(…), each with its own columns; c_t = f c_(t-1) + i g,
        h_t = o tanh(c_t)
    Gradient
        dc_t = dh_t o (1 - tanh²(c_t)) + dc_(t+1) f_(t+1), dh_t = dy_t + dz_(t+1) Uᵀ; truncated as
        `elman`'s, c like h
    Differs
        PyTorch has two biases, of which b is the sum, and W (4 H, D), U (4 H, H).
    Source
        Hochreiter and Schmidhuber, Neural Computation 9 (1997); Gers, Schmidhuber and Cummins (2000) for f.
    """
    z = split_last(
        x @ W + b, 4
    )  # the input's part, of all times in one product: only h needs the time before
    h = np.zeros((x.shape[0], x.shape[1] + 1, U.shape[0]), x.dtype)  # the start is 0
    c = np.zeros_like(h)
    u = np.zeros_like(z)
    i = np.zeros_like(z[:, :, 0])
    f = np.zeros_like(i)
    g = np.zeros_like(i)
    o = np.zeros_like(i)
    for t in range(x.shape[1]):
        u[:, t] = split_last(h[:, t] @ U, 4)  # the state's part
        i[:, t] = sigmoid(z[:, t, 0] + u[:, t, 0])  # the input gate
        f[:, t] = sigmoid(z[:, t, 1] + u[:, t, 1])  # the forget gate
        g[:, t] = np.tanh(z[:, t, 2] + u[:, t, 2])
        o[:, t] = sigmoid(z[:, t, 3] + u[:, t, 3])  # the output gate
        c[:, t + 1] = f[:, t] * c[:, t] + i[:, t] * g[:, t]
        h[:, t + 1] = o[:, t] * np.tanh(c[:, t + 1])
    y = h[:, 1:]
    return y


@lstm.backward
def lstm_backward(dy, x, W, U, h, c, i, f, g, o, *, truncate):
    dh = np.zeros_like(h)  # nothing follows the last time
    dc = np.zeros_like(c)
    dz = np.zeros((*dy.shape[:2], 4, dy.shape[2]), dy.dtype)
    for t in reversed(range(x.shape[1])):
        dh[:, t + 1] += dy[:, t]  # h was put out, and carried on: both add up
        dc[:, t + 1] += dh[:, t + 1] * o[:, t] * (1 - np.tanh(c[:, t + 1]) ** 2)  # as h, c is used twice
        dz[:, t, 0] = dc[:, t + 1] * g[:, t] * i[:, t] * (1 - i[:, t])  # the derivative of σ is σ (1 - σ)
        dz[:, t, 1] = dc[:, t + 1] * c[:, t] * f[:, t] * (1 - f[:, t])
        dz[:, t, 2] = dc[:, t + 1] * i[:, t] * (1 - g[:, t] ** 2)  # the derivative of tanh is 1 - tanh²
        dz[:, t, 3] = dh[:, t + 1] * np.tanh(c[:, t + 1]) * o[:, t] * (1 - o[:, t])
        dc[:, t] = truncated(dc[:, t + 1] * f[:, t], t, truncate)  # carried to the time before
        dh[:, t] = truncated(join_last(dz[:, t]) @ U.T, t, truncate)  # carried to the time before
    dx = join_last(dz) @ W.T
    dW = rows(x).T @ rows(join_last(dz))  # the same W serves every row and time: they add up
    dU = rows(h[:, :-1]).T @ rows(join_last(dz))  # U mapped the state before each time
    db = rows(join_last(dz)).sum(axis=0)
    return dx, dW, dU, db


@rule("N T D, D G, H G, G, H -> N T H", G="3 * H")
def gru(x, W, U, b, c, *, truncate=None):
    """Carry a state through time; a gate decides how much of it is replaced, another what the new part sees of it.

    Shapes
        x (N, T, D), W (D, 3 H), U (H, 3 H), b (3 H,), c (H,) -> y (N, T, H): the states of all times, the start left out.
        In W, U and b the columns of r, z and n stand side by side, in PyTorch's order.
    Formula
        r, z = σ(x_t W + h_(t-1) U + b), each with its own columns; n = tanh(x_t W + b + r (h_(t-1) U + c)),
        h_t = (1 - z) n + z h_(t-1)
    Gradient
        as `elman`'s, truncated too, on two ways: by the gates, and by z h_(t-1).
    Differs
        r multiplies the state's part after its product with U, as in PyTorch and cuDNN; Cho et al. multiply h before. c is
        n's part of PyTorch's second bias, whose other parts are in b; PyTorch has W (3 H, D), U (3 H, H).
    Source
        Cho et al., arXiv 1406.1078.
    """
    v = split_last(
        x @ W + b, 3
    )  # the input's part, of all times in one product: only h needs the time before
    h = np.zeros((x.shape[0], x.shape[1] + 1, U.shape[0]), x.dtype)  # the start is 0
    u = np.zeros_like(v)
    r = np.zeros_like(v[:, :, 0])
    z = np.zeros_like(r)
    n = np.zeros_like(r)
    for t in range(x.shape[1]):
        u[:, t] = split_last(h[:, t] @ U, 3)  # the state's part
        r[:, t] = sigmoid(v[:, t, 0] + u[:, t, 0])
        z[:, t] = sigmoid(v[:, t, 1] + u[:, t, 1])
        n[:, t] = np.tanh(v[:, t, 2] + r[:, t] * (u[:, t, 2] + c))
        h[:, t + 1] = (1 - z[:, t]) * n[:, t] + z[:, t] * h[:, t]
    y = h[:, 1:]
    return y


@gru.backward
def gru_backward(dy, x, W, U, c, h, u, r, z, n, *, truncate):
    dh = np.zeros_like(h)  # nothing follows the last time
    dv = np.zeros_like(u)
    du = np.zeros_like(u)
    for t in reversed(range(x.shape[1])):
        dh[:, t + 1] += dy[:, t]  # h was put out, and carried on: both add up
        dv[:, t, 2] = dh[:, t + 1] * (1 - z[:, t]) * (1 - n[:, t] ** 2)  # the derivative of tanh is 1 - tanh²
        dv[:, t, 0] = (
            dv[:, t, 2] * (u[:, t, 2] + c) * r[:, t] * (1 - r[:, t])
        )  # the derivative of σ is σ (1 - σ)
        dv[:, t, 1] = dh[:, t + 1] * (h[:, t] - n[:, t]) * z[:, t] * (1 - z[:, t])
        du[:, t, :2] = dv[:, t, :2]  # r and z are of the sum of both parts
        du[:, t, 2] = dv[:, t, 2] * r[:, t]  # in n, r multiplies the state's part
        dh[:, t] = truncated(
            dh[:, t + 1] * z[:, t] + join_last(du[:, t]) @ U.T, t, truncate
        )  # carried to the time before, on two ways
    dx = join_last(dv) @ W.T
    dW = rows(x).T @ rows(join_last(dv))  # the same W serves every row and time: they add up
    dU = rows(h[:, :-1]).T @ rows(join_last(du))  # U mapped the state before each time
    db = rows(join_last(dv)).sum(axis=0)
    dc = rows(du[:, :, 2]).sum(axis=0)
    return dx, dW, dU, db, dc


@rule("N T D -> N D")
def last_time(x):
    """Take the last time alone: ``y = x_T``, for one prediction of a whole sequence.

    Gradient
        the last time's is dy, the others' 0.
    """
    y = x[:, -1]
    return y


@last_time.backward
def last_time_backward(dy, x):
    is_last = np.arange(x.shape[1])[:, None] == x.shape[1] - 1
    dx = np.where(is_last, np.expand_dims(dy, 1), 0)  # only the last time is used
    return dx
