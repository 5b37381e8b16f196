import numpy as np


def mf_loss(U, V, R, mask, lam=0.2):
    E = (U @ V.T - R) * mask
    loss = 0.5 * np.sum(E**2) + 0.5 * lam * (np.sum(U**2) + np.sum(V**2))
    dU = E @ V + lam * U
    dV = E.T @ U + lam * V
    return loss, dU, dV
