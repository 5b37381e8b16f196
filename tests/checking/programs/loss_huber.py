import numpy as np


def huber(pred, target, delta=0.7):
    r = pred - target
    small = np.abs(r) <= delta
    loss = np.where(small, 0.5 * r**2, delta * (np.abs(r) - 0.5 * delta)).sum()
    grad = np.where(small, r, delta)
    return loss, grad
