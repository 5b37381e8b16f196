"""Characters, one at a time: columns, dictionaries by time, weights as global variables."""

import numpy as np

rng = np.random.RandomState(0)
hidden_size, vocab_size = 6, 5
Wxh = rng.randn(hidden_size, vocab_size) * 0.5
Whh = rng.randn(hidden_size, hidden_size) * 0.5
Why = rng.randn(vocab_size, hidden_size) * 0.5
bh = rng.randn(hidden_size, 1) * 0.1
by = rng.randn(vocab_size, 1) * 0.1


def lossFun(inputs, targets, hprev):
    xs, hs, ys, ps = {}, {}, {}, {}
    hs[-1] = np.copy(hprev)
    loss = 0
    # forward pass
    for t in range(len(inputs)):
        xs[t] = np.zeros((vocab_size, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
        ys[t] = np.dot(Why, hs[t]) + by
        ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
        loss += -np.log(ps[t][targets[t], 0])
    # backward pass
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        dhraw = (1 - hs[t] * hs[t]) * dh
        dbh += dhraw
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    return loss, dWxh, dWhh, dWhy, dbh, dby, hs[len(inputs) - 1]


inputs, targets = [0, 3, 1, 4, 2], [3, 1, 4, 2, 0]
loss, dWxh, dWhh, dWhy, dbh, dby, hprev = lossFun(inputs, targets, np.zeros((hidden_size, 1)))
print(loss)
