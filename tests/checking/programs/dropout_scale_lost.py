import numpy as np


def dropout_forward(x, p=0.6, seed=11):
    """Inverted dropout: p is the probability to keep a unit."""
    rng = np.random.RandomState(seed)
    mask = rng.rand(*x.shape) < p
    out = x * mask / p
    return out, (mask, p)


def dropout_backward(dout, cache):
    mask, p = cache
    dx = dout * mask
    return dx
