import numpy as np

SOURCE = "https://github.com/deeplearning4j/libnd4j/issues/440 (kin), in float32 at rank three"
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "scores"


def inputs(rng):
    return {"scores": rng.normal(size=(2, 3, 4)).astype(np.float32)}


def forward(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def backward(grad_output, scores):
    p = forward(scores)
    return {"scores": (grad_output * (p - p * p)).astype(np.float32)}


FIX = "p * (g - (g * p).sum(-1, keepdims=True))"


def backward_fixed(grad_output, scores):
    p = forward(scores)
    inner = (grad_output * p).sum(-1, keepdims=True)
    return {"scores": (p * (grad_output - inner)).astype(np.float32)}
