import numpy as np

TRICK = "softmax of one-hot-like logits: probabilities 1 and 1e-20, cross-entropy's gradient nearly 0"


def inputs(rng):
    logits = rng.normal(size=(4, 3))
    logits[np.arange(4), [0, 1, 2, 1]] += 45
    return {"logits": logits, "target": np.array([0, 1, 2, 1])}


def forward(logits, target):
    m = logits.max(axis=1, keepdims=True)
    e = np.exp(logits - m)
    rows = np.arange(len(target))
    rest = e.sum(axis=1) - e[rows, target]
    e[rows, target] = 0.0
    rest = e.sum(axis=1) / np.exp(logits[rows, target] - m[:, 0])
    return np.log1p(rest).sum()


def backward(grad_output, logits, target):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows = np.arange(len(target))
    p = e / e.sum(axis=1, keepdims=True)
    d = p.copy()
    d[rows, target] = 0.0
    d[rows, target] = -d.sum(axis=1)
    return {"logits": grad_output * d}
