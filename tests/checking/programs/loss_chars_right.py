"""A recurrent network over characters, its parameters global, trained with Adagrad."""
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


def lossFun(inputs, targets, hprev):
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
        dWhh += np.dot(draw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, draw)
    for grad in [dWxh, dWhh, dWhy, dbh, dby]:
        np.clip(grad, -5, 5, out=grad)
    return loss, dWxh, dWhh, dWhy, dbh, dby, hs[len(inputs) - 1]


def sample(h, seed, n):
    x = np.zeros((size, 1))
    x[seed] = 1
    found = []
    for _ in range(n):
        h = np.tanh(np.dot(Wxh, x) + np.dot(Whh, h) + bh)
        y = np.dot(Why, h) + by
        p = np.exp(y) / np.sum(np.exp(y))
        ix = np.random.choice(range(size), p=p.ravel())
        x = np.zeros((size, 1))
        x[ix] = 1
        found.append(ix)
    return found


if __name__ == "__main__":
    n, p = 0, 0
    mWxh, mWhh, mWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    mbh, mby = np.zeros_like(bh), np.zeros_like(by)
    smooth_loss = -np.log(1.0 / size) * seq_length
    while True:
        if p + seq_length + 1 >= len(text) or n == 0:
            hprev = np.zeros((hidden_size, 1))
            p = 0
        inputs = [number_of[c] for c in text[p : p + seq_length]]
        targets = [number_of[c] for c in text[p + 1 : p + seq_length + 1]]
        if n % 100 == 0:
            print("".join(alphabet[k] for k in sample(hprev, inputs[0], 50)))
        loss, dWxh, dWhh, dWhy, dbh, dby, hprev = lossFun(inputs, targets, hprev)
        smooth_loss = smooth_loss * 0.999 + loss * 0.001
        if n % 100 == 0:
            print("iter %d, loss: %f" % (n, smooth_loss))
        for param, dparam, mem in zip([Wxh, Whh, Why, bh, by], [dWxh, dWhh, dWhy, dbh, dby], [mWxh, mWhh, mWhy, mbh, mby]):
            mem += dparam * dparam
            param += -learning_rate * dparam / np.sqrt(mem + 1e-8)
        p += seq_length
        n += 1
