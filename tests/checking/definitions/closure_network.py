import numpy as np


def make_layer(n_in, n_out, rng):
    W = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out))
    b = rng.normal(size=n_out)
    x = None

    def fwd(inp):
        nonlocal x
        x = inp
        return inp @ W + b

    def bwd(dout):
        return dout @ W.T, (x.T @ dout, dout.sum(axis=0))

    return fwd, bwd


def make_mlp(sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [make_layer(a, b, rng) for a, b in zip(sizes[:-1], sizes[1:])]
    masks = []

    def forward(x):
        masks.clear()
        for i, (fwd, _) in enumerate(layers):
            x = fwd(x)
            if i < len(layers) - 1:
                masks.append(x > 0)
                x = x * masks[-1]
        return x

    def backward(dout):
        grads = []
        for i, (_, bwd) in reversed(list(enumerate(layers))):
            if i < len(layers) - 1:
                dout = dout * masks[i]
            dout, grad = bwd(dout)
            grads.insert(0, grad)
        return dout, grads

    return forward, backward
#WRONG: dout = dout * masks[i] => dout = dout
