import numpy as np


def batchnorm_forward(x, gamma, beta, eps=1e-5):
    N, D = x.shape
    # step 1: mean
    mu = 1.0 / N * np.sum(x, axis=0)
    # step 2: subtract the mean from every training example
    xmu = x - mu
    # step 3, 4: variance
    sq = xmu**2
    var = 1.0 / N * np.sum(sq, axis=0)
    # step 5, 6: one over the standard deviation
    sqrtvar = np.sqrt(var + eps)
    ivar = 1.0 / sqrtvar
    # step 7: normalise
    xhat = xmu * ivar
    # step 8, 9: scale and shift
    out = gamma * xhat + beta
    cache = (xhat, gamma, xmu, ivar, sqrtvar, var, eps)
    return out, cache


def batchnorm_backward(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu1 = dxhat * ivar
    dsqrtvar = -1.0 / (sqrtvar**2) * divar
    dvar = 0.5 * 1.0 / np.sqrt(var + eps) * dsqrtvar
    dsq = 1.0 / N * np.ones((N, D)) * dvar
    dxmu2 = 2 * xmu * dsq
    dx1 = dxmu1 + dxmu2
    dmu = -1 * np.sum(dxmu1 + dxmu2, axis=0)
    dx2 = 1.0 / N * np.ones((N, D)) * dmu
    dx = dx1 + dx2
    return dx, dgamma, dbeta
