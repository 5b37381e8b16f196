import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def propagate(w, b, X, Y):
    """w (n, 1), b a number, X (n, m), Y (1, m)"""
    m = X.shape[1]
    A = sigmoid(np.dot(w.T, X) + b)
    cost = -1 / m * np.sum(Y * np.log(A) + (1 - Y) * np.log(1 - A))
    dw = 1 / m * np.dot(X, (A - Y).T)
    db = 1 / m * np.sum(A - Y)
    grads = {"dw": dw, "db": db}
    return grads, cost
