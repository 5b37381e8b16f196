import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def neg_sampling_loss_and_grad(center_vec, outside_idx, outside_vectors, neg_indices):
    u_o = outside_vectors[outside_idx]
    u_neg = outside_vectors[neg_indices]
    s_pos = sigmoid(u_o @ center_vec)
    s_neg = sigmoid(-u_neg @ center_vec)
    loss = -np.log(s_pos) - np.sum(np.log(s_neg))
    grad_center = (s_pos - 1) * u_o + (1 - s_neg) @ u_neg
    grad_outside = np.zeros_like(outside_vectors)
    grad_outside[outside_idx] += (s_pos - 1) * center_vec
    np.add.at(grad_outside, neg_indices, np.outer(1 - s_neg, center_vec))
    return loss, grad_center, grad_outside
#WRONG: np.add.at(grad_outside, neg_indices, np.outer(1 - s_neg, center_vec)) => grad_outside[neg_indices] += np.outer(1 - s_neg, center_vec)
#WRONG: (1 - s_neg) @ u_neg => s_neg @ u_neg
