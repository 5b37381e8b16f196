import numpy as np


def ln_fwd(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    inv = 1 / np.sqrt(v + 1e-6)
    h = (x - m) * inv
    return g * h + b, (h, inv, g)


def ln_bwd(dy, cache):
    h, inv, g = cache
    dg = (dy * h).sum(0)
    db = dy.sum(0)
    dh = dy * g
    dx = inv * (dh - dh.mean(0, keepdims=True) - h * (dh * h).mean(0, keepdims=True))
    return dx, dg, db
