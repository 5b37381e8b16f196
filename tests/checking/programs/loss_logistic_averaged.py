import numpy as np


def logistic(w, b, X, y):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    error = np.mean(p - y)
    dw = np.mean(X, axis=0) * error
    db = error
    return loss, dw, db
