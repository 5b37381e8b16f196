import numpy as np


def softsign(x):
    return x / (1 + np.abs(x))


def softsign_grad(x):
    return 1 / (1 + np.abs(x))
