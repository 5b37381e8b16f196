import numpy as np


def batchnorm_forward(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, axis=0)
    variance = np.var(x, axis=0)
    x_norm = (x - mean) / np.sqrt(variance + eps)
    out = gamma * x_norm + beta
    cache = (x_norm, variance, gamma, eps)
    return out, cache


def batchnorm_backward(dout, cache):
    x_norm, variance, gamma, eps = cache
    dgamma = np.sum(dout * x_norm, axis=0)
    dbeta = np.sum(dout, axis=0)
    dx = dout * gamma / np.sqrt(variance + eps)
    return dx, dgamma, dbeta
