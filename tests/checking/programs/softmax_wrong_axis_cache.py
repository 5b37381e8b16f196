import numpy as np


def attention_weights_forward(scores):
    """scores (T, T): each query is a row, and its weights sum to one."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    w = e / e.sum(axis=1, keepdims=True)
    return w, w


def attention_weights_backward(dw, w):
    return w * (dw - np.sum(dw * w, axis=0, keepdims=True))
