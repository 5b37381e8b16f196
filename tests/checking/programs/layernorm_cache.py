import numpy as np


def layernorm_forward(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=1, keepdims=True)
    sigma = np.sqrt(x.var(axis=1, keepdims=True) + eps)
    xn = (x - mu) / sigma
    return xn * gamma + beta, (xn, sigma, gamma)


def layernorm_backward(dout, cache):
    xn, sigma, gamma = cache
    D = xn.shape[1]
    dbeta = dout.sum(axis=0)
    dgamma = (dout * xn).sum(axis=0)
    dxn = dout * gamma
    dx = (1.0 / D) / sigma * (
        D * dxn - dxn.sum(axis=1, keepdims=True) - xn * (dxn * xn).sum(axis=1, keepdims=True)
    )
    return dx, dgamma, dbeta
