import numpy as np


def autoencoder(W, b, c, X):
    """Tied weights: code = sigmoid(X W + b), reconstruction = code W^T + c."""
    H = 1 / (1 + np.exp(-(X @ W + b)))
    R = H @ W.T + c
    D = R - X
    loss = 0.5 * np.sum(D**2) / len(X)
    dR = D / len(X)
    dc = dR.sum(0)
    dH = dR @ W
    dZ = dH * H * (1 - H)
    dW = X.T @ dZ
    db = dZ.sum(0)
    return loss, (dW, db, dc)
