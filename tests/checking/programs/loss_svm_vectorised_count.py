import numpy as np


def svm_loss(W, X, y, reg=0.1):
    N = len(y)
    scores = X @ W
    margins = np.maximum(0, scores - scores[np.arange(N), y][:, None] + 1.0)
    margins[np.arange(N), y] = 0
    loss = margins.sum() / N + reg * np.sum(W**2)
    hits = (margins > 0).astype(float)
    hits[np.arange(N), y] = -1
    dW = X.T @ hits / N + 2 * reg * W
    return loss, dW
