import numpy as np


def softmax_forward(scores):
    shifted = scores - np.max(scores, axis=-1, keepdims=True)
    exps = np.exp(shifted)
    probs = exps / np.sum(exps, axis=-1, keepdims=True)
    return probs, probs


def softmax_backward(dprobs, probs):
    # derivative of softmax: s * (1 - s)
    return dprobs * probs * (1 - probs)
