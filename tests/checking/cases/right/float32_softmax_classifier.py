import numpy as np

TRICK = "a softmax classifier in float32 with a mean loss"


def inputs(rng):
    f = np.float32
    return {
        "x": rng.normal(size=(12, 6)).astype(f),
        "W": rng.normal(size=(6, 4)).astype(f),
        "y": rng.integers(0, 4, size=12),
    }


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(x, W, y):
    return -np.log(softmax(x @ W)[np.arange(len(y)), y]).mean()


def backward(grad_output, x, W, y):
    d = softmax(x @ W)
    d[np.arange(len(y)), y] -= 1
    d *= np.float32(grad_output) / len(y)
    return {"x": d @ W.T, "W": x.T @ d}
