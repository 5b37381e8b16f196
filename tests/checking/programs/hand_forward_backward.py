import numpy as np


def forward(X, W1, b1, W2, b2):
    z1 = X @ W1 + b1
    a1 = np.tanh(z1)
    z2 = a1 @ W2 + b2
    yhat = np.exp(z2 - z2.max(1, keepdims=True))
    yhat = yhat / yhat.sum(1, keepdims=True)
    return z1, a1, z2, yhat


def cross_entropy(yhat, y):
    return -np.sum(y * np.log(yhat)) / len(y)


def backward(X, y, a1, yhat, W2):
    n = len(X)
    dz2 = (yhat - y) / n
    dW2 = a1.T @ dz2
    db2 = dz2.sum(axis=0)
    dz1 = (dz2 @ W2.T) * (1 - a1**2)
    dW1 = X.T @ dz1
    db1 = dz1.sum(axis=0)
    return dW1, db1, dW2, db2
