import numpy as np

SOURCE = "the second layer's weights get z1 (before the ReLU) where the layer had seen a1"
EXPECT = "wrong-evaluation-point"
ACCEPT = []
WHERE = "W2"


def inputs(rng):
    return {"X": rng.normal(size=(3, 6)), "W1": rng.normal(size=(4, 3)), "W2": rng.normal(size=(2, 4))}


def forward(X, W1, W2):
    Z1 = np.dot(W1, X)
    return np.dot(W2, np.maximum(0, Z1))


def backward(grad_output, X, W1, W2):
    Z1 = np.dot(W1, X)
    dW2 = np.dot(grad_output, Z1.T)
    dZ1 = np.dot(W2.T, grad_output)
    dZ1[Z1 <= 0] = 0
    return {"X": np.dot(W1.T, dZ1), "W1": np.dot(dZ1, X.T), "W2": dW2}


FIX = "dW2 = np.dot(grad_output, np.maximum(0, Z1).T)"


def backward_fixed(grad_output, X, W1, W2):
    Z1 = np.dot(W1, X)
    dW2 = np.dot(grad_output, np.maximum(0, Z1).T)
    dZ1 = np.dot(W2.T, grad_output)
    dZ1[Z1 <= 0] = 0
    return {"X": np.dot(W1.T, dZ1), "W1": np.dot(dZ1, X.T), "W2": dW2}
