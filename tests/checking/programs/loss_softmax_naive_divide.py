import numpy as np


def softmax_loss_naive(W, X, y, reg):
    loss = 0.0
    dW = np.zeros_like(W)
    N, C = X.shape[0], W.shape[1]
    for i in range(N):
        f = X[i] @ W
        f -= f.max()
        p = np.exp(f) / np.sum(np.exp(f))
        loss -= np.log(p[y[i]])
        for j in range(C):
            dW[:, j] += (p[j] - (j == y[i])) * X[i]
    loss = loss / N + 0.5 * reg * np.sum(W * W)
    dW += reg * W
    return loss, dW
