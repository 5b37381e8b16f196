import numpy as np
import scipy.optimize as opt

def sigmoid(z):
    return 1 / (1 + np.exp(-z))

def cost(theta, X, y, lam):
    h = sigmoid(X @ theta)
    first = -y * np.log(h) - (1 - y) * np.log(1 - h)
    reg = lam / (2 * len(X)) * np.sum(theta[1:] ** 2)
    return np.mean(first) + reg

def gradient(theta, X, y, lam):
    h = sigmoid(X @ theta)
    grad = X.T @ (h - y) / len(X)
    grad[1:] += lam / len(X) * theta[1:]
    return grad

#WRONG: grad[1:] += lam / len(X) * theta[1:] => grad += lam / len(X) * theta
