import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def neg_sampling(v_c, u_o, U_neg):
    """Loss and gradients for one centre vector (d,), one outside vector (d,), k negatives (k, d)."""
    pos = sigmoid(u_o @ v_c)
    neg = sigmoid(-U_neg @ v_c)
    loss = -np.log(pos) - np.sum(np.log(neg))
    grad_v = (pos - 1) * u_o + (1 - neg) @ U_neg
    grad_u = (pos - 1) * v_c
    grad_U = np.outer(1 - neg, v_c)
    return loss, grad_v, grad_u, grad_U
