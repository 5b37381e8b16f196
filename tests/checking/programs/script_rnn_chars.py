import numpy as np

text = "hello handmade gradients"
chars = sorted(set(text))
ix = {c: i for i, c in enumerate(chars)}
V, H, T = len(chars), 8, 6
rng = np.random.RandomState(3)
Wxh = rng.randn(H, V) * 0.3
Whh = rng.randn(H, H) * 0.3
Why = rng.randn(V, H) * 0.3
bh, by = np.zeros((H, 1)), np.zeros((V, 1))
hprev = np.zeros((H, 1))
inputs = [ix[c] for c in text[:T]]
targets = [ix[c] for c in text[1 : T + 1]]

xs, hs, ps = {}, {-1: hprev}, {}
loss = 0
for t in range(T):
    xs[t] = np.zeros((V, 1))
    xs[t][inputs[t]] = 1
    hs[t] = np.tanh(Wxh @ xs[t] + Whh @ hs[t - 1] + bh)
    y = Why @ hs[t] + by
    ps[t] = np.exp(y) / np.sum(np.exp(y))
    loss += -np.log(ps[t][targets[t], 0])

dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
dbh, dby = np.zeros_like(bh), np.zeros_like(by)
dhnext = np.zeros_like(hprev)
for t in reversed(range(T)):
    dy = np.copy(ps[t])
    dy[targets[t]] -= 1
    dWhy += dy @ hs[t].T
    dby += dy
    dh = Why.T @ dy + dhnext
    dhraw = (1 - hs[t] * hs[t]) * dh
    dbh += dhraw
    dWxh += dhraw @ xs[t].T
    dWhh += dhraw @ hs[t].T
    dhnext = Whh.T @ dhraw

for param, dparam in zip([Wxh, Whh, Why, bh, by], [dWxh, dWhh, dWhy, dbh, dby]):
    param -= 0.1 * dparam
