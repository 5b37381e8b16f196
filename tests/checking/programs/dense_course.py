import numpy as np

# activations are (units, m): one column per example


def sigmoid(Z):
    A = 1 / (1 + np.exp(-Z))
    return A, Z


def relu(Z):
    A = np.maximum(0, Z)
    return A, Z


def linear_activation_forward(A_prev, W, b, activation):
    Z = np.dot(W, A_prev) + b
    if activation == "sigmoid":
        A, activation_cache = sigmoid(Z)
    else:
        A, activation_cache = relu(Z)
    linear_cache = (A_prev, W, b)
    return A, (linear_cache, activation_cache)


def linear_activation_backward(dA, cache, activation):
    linear_cache, activation_cache = cache
    A_prev, W, b = linear_cache
    Z = activation_cache
    if activation == "sigmoid":
        s = 1 / (1 + np.exp(-Z))
        dZ = dA * s * (1 - s)
    else:
        dZ = dA * (Z > 0)
    dW = np.dot(dZ, A_prev.T)
    db = np.sum(dZ, axis=1)
    dA_prev = np.dot(W.T, dZ)
    return dA_prev, dW, db
