import numpy as np


def dropout_forward(x, dropout_param):
    p, mode = dropout_param["p"], dropout_param["mode"]
    np.random.seed(dropout_param["seed"])
    mask = None
    out = x
    if mode == "train":
        mask = (np.random.rand(*x.shape) < p) / p
        out = x * mask
    cache = (dropout_param, mask)
    return out, cache


def dropout_backward(dout, cache):
    dropout_param, mask = cache
    if dropout_param["mode"] == "train":
        return dout * mask
    return dout
