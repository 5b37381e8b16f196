import numpy as np


def word_embedding_forward(x, W):
    out = W[x]
    return out, (x, W)


def word_embedding_backward(dout, cache):
    x, W = cache
    dW = np.zeros_like(W)
    np.add.at(dW, x, dout)
    return dW
