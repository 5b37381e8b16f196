import numpy as np


def linear_forward(A, W, b):
    Z = W @ A + b
    return Z, (A, W, b)


def forward_and_cost(X, W1, b1, W2, b2, Y):
    m = X.shape[1]
    Z1, cache1 = linear_forward(X, W1, b1)
    A1 = np.tanh(Z1)
    Z2, cache2 = linear_forward(A1, W2, b2)
    A2 = 1 / (1 + np.exp(-Z2))
    cost = -np.sum(Y * np.log(A2) + (1 - Y) * np.log(1 - A2)) / m
    return cost, (cache1, A1, cache2, A2)


def backward(Y, caches):
    (X, W1, b1), A1, (_, W2, b2), A2 = caches
    m = Y.shape[1]
    dZ2 = (A2 - Y) / m
    dW2 = dZ2 @ A1.T / m
    db2 = np.sum(dZ2, axis=1, keepdims=True) / m
    dA1 = W2.T @ dZ2
    dZ1 = dA1 * (1 - A1**2)
    dW1 = dZ1 @ X.T / m
    db1 = np.sum(dZ1, axis=1, keepdims=True) / m
    return {"dW1": dW1, "db1": db1, "dW2": dW2, "db2": db2}
