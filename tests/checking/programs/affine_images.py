import numpy as np


def fc_forward(X, W, b):
    """X is a minibatch of images (N, H, Wd, C); every image is unrolled into a row."""
    rows = X.reshape(X.shape[0], -1)
    out = rows @ W + b
    return out, (X, W)


def fc_backward(dout, cache):
    X, W = cache
    rows = X.reshape(X.shape[0], -1)
    dX = (dout @ W.T).reshape(X.shape)
    dW = rows.T @ dout
    db = dout.mean(axis=0)
    return dX, dW, db
