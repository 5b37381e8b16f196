import numpy as np


def cost_and_gradient(theta, X, y):
    m = len(y)
    errors = X @ theta - y
    J = np.sum(errors**2) / (2 * m)
    grad = X.T @ errors / m
    return J, grad
