import numpy as np


def linear(x, W, b):
    y = x @ W + b

    def pullback(dy):
        return dy @ W.T, x.T @ dy, dy.sum(0)

    return y, pullback


def softplus(x):
    return np.logaddexp(0, x), lambda g: g / (1 + np.exp(-x))


def layernorm(x, g, b, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    inv = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    xhat = (x - mu) * inv

    def pullback(dy):
        dxhat = dy * g
        dx = inv * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * (dxhat * xhat).mean(-1, keepdims=True))
        return dx, (dy * xhat).sum(0), dy.sum(0)

    return g * xhat + b, pullback
#WRONG: return dy @ W.T, x.T @ dy, dy.sum(0) => return dy @ W.T, x.T @ dy, dy.mean(0)
#WRONG: lambda g: g / (1 + np.exp(-x)) => lambda g: g / (1 + np.exp(x))
#WRONG:  - xhat * (dxhat * xhat).mean(-1, keepdims=True)) => )
