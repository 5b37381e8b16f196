import numpy as np


def nonlin(x, deriv=False):
    # with deriv=True, x is already an output of this function
    if deriv:
        return x * (1 - x)
    return 1 / (1 + np.exp(-x))
