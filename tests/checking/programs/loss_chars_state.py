import numpy as np

text = "the cat sat on the mat and the rat sat on the cat " * 4
alphabet = sorted(set(text))
size = len(alphabet)
number_of = {c: k for k, c in enumerate(alphabet)}

hidden_size = 5
seq_length = 6
learning_rate = 1e-1

Wxh = np.random.randn(hidden_size, size) * 0.1
Whh = np.random.randn(hidden_size, hidden_size) * 0.1
Why = np.random.randn(size, hidden_size) * 0.1
bh = np.zeros((hidden_size, 1))
by = np.zeros((size, 1))


def loss_and_gradients(inputs, targets, hprev):
    """inputs and targets are lists of integers, hprev is (hidden, 1); returns the loss, the gradients, the last state"""
    xs, hs, ys, ps = {}, {}, {}, {}
    hs[-1] = np.copy(hprev)
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((size, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
        ys[t] = np.dot(Why, hs[t]) + by
        ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
        loss += -np.log(ps[t][targets[t], 0])
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        draw = (1 - hs[t] * hs[t]) * dh
        dbh += draw
        dWxh += np.dot(draw, xs[t].T)
        dWhh += np.dot(draw, hs[t].T)
        dhnext = np.dot(Whh.T, draw)
    return loss, dWxh, dWhh, dWhy, dbh, dby, hs[len(inputs) - 1]
