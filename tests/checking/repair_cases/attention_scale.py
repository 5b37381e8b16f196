"""Attention: the scale of the scores is forgotten on the way back, for queries and keys."""

import numpy as np


def inputs(rng):
    return {"q": rng.normal(size=(4, 3)), "k": rng.normal(size=(5, 3)), "v": rng.normal(size=(5, 2))}


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forward(q, k, v):
    return softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v


def backward(grad_output, q, k, v):
    p = softmax(q @ k.T / np.sqrt(q.shape[-1]))
    dv = p.T @ grad_output
    dp = grad_output @ v.T
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True))
    return {"q": ds @ k, "k": ds.T @ q, "v": dv}


def backward_fixed(grad_output, q, k, v):
    p = softmax(q @ k.T / np.sqrt(q.shape[-1]))
    dp = grad_output @ v.T
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return {"q": ds @ k, "k": ds.T @ q, "v": p.T @ grad_output}
