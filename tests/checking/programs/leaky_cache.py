import numpy as np


def leaky_relu_forward(z, alpha=0.1):
    a = np.where(z > 0, z, alpha * z)
    return a, (z, alpha)


def leaky_relu_backward(da, cache):
    z, alpha = cache
    dz = da.copy()
    dz[z <= 0] *= alpha
    return dz
