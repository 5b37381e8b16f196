import numpy as np


def log_reg(params, X, y, C=0.8):
    w, b = params
    z = X @ w + b
    data_term = np.mean(np.log1p(np.exp(-y * z)))  # y is -1 or 1
    loss = data_term + 0.5 * C * np.dot(w, w)
    coefficient = -y / (1 + np.exp(y * z)) / len(y)
    return loss, (X.T @ coefficient, coefficient.sum())
