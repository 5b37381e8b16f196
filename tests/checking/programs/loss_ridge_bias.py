import numpy as np


def ridge(theta, X, y, lam=0.3):
    # column 0 of X is ones: the intercept is not regularised
    m = y.size
    h = X.dot(theta)
    J = ((h - y) ** 2).sum() / (2 * m) + lam / (2 * m) * (theta[1:] ** 2).sum()
    grad = X.T.dot(h - y) / m
    grad = grad + lam / m * theta
    return J, grad
