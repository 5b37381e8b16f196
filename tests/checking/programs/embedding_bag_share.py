import numpy as np

rng = np.random.default_rng(0)
vocab, dim, classes = 20, 6, 3
E = rng.normal(0, 0.1, (vocab, dim))
W = rng.normal(0, 0.1, (dim, classes))
b = np.zeros(classes)


def forward(token_ids):
    """token_ids: (batch, length) of whole numbers"""
    emb = E[token_ids]
    pooled = emb.mean(axis=1)
    logits = pooled @ W + b
    return logits, (token_ids, pooled)


def backward(dlogits, cache):
    token_ids, pooled = cache
    dW = pooled.T @ dlogits
    db = dlogits.sum(axis=0)
    dpooled = dlogits @ W.T
    dE = np.zeros_like(E)
    np.add.at(dE, token_ids, dpooled[:, None, :])
    return dE, dW, db
