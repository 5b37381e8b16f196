"""KL divergence of p from q by logits of q: p minus q has the wrong order, for a mean over rows."""

import numpy as np


def inputs(rng):
    p = rng.uniform(0.1, 1, size=(4, 3))
    return {"logits": rng.normal(size=(4, 3)), "p": p / p.sum(axis=1, keepdims=True)}


def log_softmax(z):
    s = z - z.max(axis=1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def forward(logits, p):
    return np.asarray((p * (np.log(p) - log_softmax(logits))).sum() / len(p))


def backward(grad_output, logits, p):
    q = np.exp(log_softmax(logits))
    scale = grad_output / p.shape[1]
    return {"logits": scale * (p - q)}


def backward_fixed(grad_output, logits, p):
    q = np.exp(log_softmax(logits))
    return {"logits": grad_output / len(p) * (q - p)}
