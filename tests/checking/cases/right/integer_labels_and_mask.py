import numpy as np

TRICK = "integer labels and a boolean mask among the arguments; two of six positions are padding"


def inputs(rng):
    return {
        "logits": rng.normal(size=(6, 4)),
        "labels": rng.integers(0, 4, size=6),
        "keep": np.array([True, True, False, True, False, True]),
    }


def logp(logits):
    s = logits - logits.max(axis=1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def forward(logits, labels, keep):
    return -(logp(logits)[np.arange(6), labels] * keep).sum() / keep.sum()


def backward(grad_output, logits, labels, keep):
    d = np.exp(logp(logits))
    d[np.arange(6), labels] -= 1
    return {"logits": grad_output * d * keep[:, None] / keep.sum()}
