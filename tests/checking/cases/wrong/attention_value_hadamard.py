import numpy as np

SOURCE = "attention with as many positions as features: P.T * g in place of P.T @ g for the values"
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = []
WHERE = "V"


def inputs(rng):
    return {"S": rng.normal(size=(3, 3)), "V": rng.normal(size=(3, 3))}


def attend(S):
    P = np.exp(S - S.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def forward(S, V):
    return attend(S) @ V


def backward(grad_output, S, V):
    P = attend(S)
    dP = grad_output @ V.T
    dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))
    return {"S": dS, "V": P.T * grad_output}


FIX = "dV = P.T @ grad_output"


def backward_fixed(grad_output, S, V):
    P = attend(S)
    dP = grad_output @ V.T
    dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))
    return {"S": dS, "V": P.T @ grad_output}
