import numpy as np


def relu(x, derivative=False):
    if derivative:
        return np.where(x > 0, 1.0, 0.0)
    return np.maximum(0.0, x)
