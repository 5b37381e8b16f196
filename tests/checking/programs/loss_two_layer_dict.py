import numpy as np


def two_layer(params, X, T):
    n = len(X)
    z1 = X @ params["W1"] + params["b1"]
    a1 = np.tanh(z1)
    y = a1 @ params["W2"] + params["b2"]
    loss = 0.5 * np.sum((y - T) ** 2) / n

    dy = (y - T) / n
    grads = {"W2": a1.T @ dy, "b2": dy.sum(0)}
    da1 = dy @ params["W2"].T
    dz1 = da1 * (1 - z1**2)
    grads["W1"] = X.T @ dz1
    grads["b1"] = dz1.sum(0)
    return loss, grads
