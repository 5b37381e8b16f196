import numpy as np

SOURCE = "cosine similarity: d/da = b / (|a||b|), the term that keeps a's length from mattering is left out"
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["a", "b"]


def inputs(rng):
    return {"a": rng.normal(size=(5, 3)), "b": rng.normal(size=(5, 3))}


def forward(a, b):
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def backward(grad_output, a, b):
    na = np.linalg.norm(a, axis=-1, keepdims=True)
    nb = np.linalg.norm(b, axis=-1, keepdims=True)
    g = grad_output[:, None]
    return {"a": g * b / (na * nb), "b": g * a / (na * nb)}


FIX = "da = g * (b / (na * nb) - cos * a / na**2), likewise db"


def backward_fixed(grad_output, a, b):
    na = np.linalg.norm(a, axis=-1, keepdims=True)
    nb = np.linalg.norm(b, axis=-1, keepdims=True)
    g = grad_output[:, None]
    cos = forward(a, b)[:, None]
    return {"a": g * (b / (na * nb) - cos * a / na**2), "b": g * (a / (na * nb) - cos * b / nb**2)}
