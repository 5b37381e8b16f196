import numpy as np

SOURCE = "softmax along the rows, its backward sums along the columns; square logits hide it"
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "scores"


def inputs(rng):
    return {"scores": rng.normal(size=(5, 5))}


def forward(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def backward(grad_output, scores):
    p = forward(scores)
    dot = np.sum(p * grad_output, axis=0, keepdims=True)
    return {"scores": p * (grad_output - dot)}


FIX = "dot = np.sum(p * grad_output, axis=1, keepdims=True)"


def backward_fixed(grad_output, scores):
    p = forward(scores)
    dot = np.sum(p * grad_output, axis=1, keepdims=True)
    return {"scores": p * (grad_output - dot)}
