import numpy as np


def bn_forward(x, gamma, beta):
    mu = x.mean(axis=0)
    var = x.var(axis=0)
    std = np.sqrt(var + 1e-5)
    z = (x - mu) / std
    return gamma * z + beta, {"z": z, "std": std, "gamma": gamma}


def bn_backward(dout, cache):
    z, std, gamma = cache["z"], cache["std"], cache["gamma"]
    dbeta = dout.sum(axis=0)
    dgamma = (dout * z).sum(axis=0)
    dz = dout * gamma
    # z depends on x directly and through std
    dx = (dz - z * (dz * z).mean(axis=0)) / std
    return dx, dgamma, dbeta
