import numpy as np

SOURCE = (
    "https://github.com/ooples/AiDotNet.Tensors/issues/49 (kin): attention backward whose key gradient "
    "misses the transpose of the scores"
)
EXPECT = "transposed"
ACCEPT = []
WHERE = "K"


def inputs(rng):
    return {"Q": rng.normal(size=(4, 3)), "K": rng.normal(size=(4, 3)), "V": rng.normal(size=(4, 2))}


def probs(Q, K):
    s = Q @ K.T / np.sqrt(Q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def forward(Q, K, V):
    return probs(Q, K) @ V


def backward(grad_output, Q, K, V):
    P = probs(Q, K)
    dV = P.T @ grad_output
    dP = grad_output @ V.T
    dS = P * (dP - (dP * P).sum(-1, keepdims=True)) / np.sqrt(Q.shape[-1])
    return {"Q": dS @ K, "K": dS @ Q, "V": dV}


FIX = "dK = dS.T @ Q"


def backward_fixed(grad_output, Q, K, V):
    P = probs(Q, K)
    dP = grad_output @ V.T
    dS = P * (dP - (dP * P).sum(-1, keepdims=True)) / np.sqrt(Q.shape[-1])
    return {"Q": dS @ K, "K": dS.T @ Q, "V": P.T @ grad_output}
