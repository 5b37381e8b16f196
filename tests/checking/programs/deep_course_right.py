import numpy as np


def initialise(n_x, n_h, n_y, seed=3):
    rng = np.random.RandomState(seed)
    return {
        "W1": rng.randn(n_h, n_x) * 0.5,
        "b1": np.zeros((n_h, 1)),
        "W2": rng.randn(n_y, n_h) * 0.5,
        "b2": np.zeros((n_y, 1)),
    }


def forward_propagation(X, parameters):
    Z1 = parameters["W1"] @ X + parameters["b1"]
    A1 = np.tanh(Z1)
    Z2 = parameters["W2"] @ A1 + parameters["b2"]
    A2 = 1 / (1 + np.exp(-Z2))
    return A2, {"Z1": Z1, "A1": A1, "Z2": Z2, "A2": A2}


def compute_cost(A2, Y):
    m = Y.shape[1]
    return float(-np.sum(Y * np.log(A2) + (1 - Y) * np.log(1 - A2)) / m)


def backward_propagation(parameters, cache, X, Y):
    m = X.shape[1]
    A1, A2 = cache["A1"], cache["A2"]
    dZ2 = A2 - Y
    dW2 = dZ2 @ A1.T / m
    db2 = dZ2.sum(axis=1, keepdims=True) / m
    dZ1 = (parameters["W2"].T @ dZ2) * (1 - A1 * A1)
    dW1 = dZ1 @ X.T / m
    db1 = dZ1.sum(axis=1, keepdims=True) / m
    return {"dW1": dW1, "db1": db1, "dW2": dW2, "db2": db2}
