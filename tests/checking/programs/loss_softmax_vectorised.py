import numpy as np


def softmax_loss_vectorized(W, X, y, reg):
    num = X.shape[0]
    logits = X.dot(W)
    logits -= np.max(logits, axis=1, keepdims=True)
    probabilities = np.exp(logits)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    loss = -np.log(probabilities[range(num), y]).mean() + reg * np.sum(W * W)
    probabilities[range(num), y] -= 1
    dW = X.T.dot(probabilities) / num + 2 * reg * W
    return loss, dW
