import numpy as np

SOURCE = "attention: the values' gradient is taken with the scores before the softmax"
EXPECT = "wrong-evaluation-point"
ACCEPT = ["missing-local-derivative"]
WHERE = "V"


def inputs(rng):
    return {"S": rng.normal(size=(4, 5)), "V": rng.normal(size=(5, 2))}


def softmax(s):
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forward(S, V):
    return softmax(S) @ V


def backward(grad_output, S, V):
    P = softmax(S)
    dP = grad_output @ V.T
    return {"S": P * (dP - (P * dP).sum(-1, keepdims=True)), "V": S.T @ grad_output}


FIX = "dV = softmax(S).T @ grad_output"


def backward_fixed(grad_output, S, V):
    P = softmax(S)
    dP = grad_output @ V.T
    return {"S": P * (dP - (P * dP).sum(-1, keepdims=True)), "V": P.T @ grad_output}
