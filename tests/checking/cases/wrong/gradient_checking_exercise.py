import numpy as np

SOURCE = (
    "https://github.com/bighuang624/Andrew-Ng-Deep-Learning-notes/issues/10: the exercise's planted "
    "errors, dW2 with '* 2' left in"
)
EXPECT = "constant-factor"
ACCEPT = []
WHERE = "W2"


def relu(z):
    return np.maximum(z, 0)


def inputs(rng):
    return {
        "X": rng.normal(size=(4, 3)),
        "Y": np.array([[1, 0, 1]]),
        "W1": rng.normal(size=(5, 4)),
        "b1": rng.normal(size=(5, 1)),
        "W2": rng.normal(size=(3, 5)),
        "b2": rng.normal(size=(3, 1)),
        "W3": rng.normal(size=(1, 3)),
        "b3": rng.normal(size=(1, 1)),
    }


def propagate(X, W1, b1, W2, b2, W3, b3):
    A1 = relu(W1 @ X + b1)
    A2 = relu(W2 @ A1 + b2)
    A3 = 1 / (1 + np.exp(-(W3 @ A2 + b3)))
    return A1, A2, A3


def forward(X, Y, W1, b1, W2, b2, W3, b3):
    _, _, A3 = propagate(X, W1, b1, W2, b2, W3, b3)
    m = X.shape[1]
    return -(Y * np.log(A3) + (1 - Y) * np.log(1 - A3)).sum() / m


def backward(grad_output, X, Y, W1, b1, W2, b2, W3, b3):
    m = X.shape[1]
    A1, A2, A3 = propagate(X, W1, b1, W2, b2, W3, b3)
    dZ3 = grad_output * (A3 - Y)
    dW3 = 1.0 / m * np.dot(dZ3, A2.T)
    db3 = 1.0 / m * np.sum(dZ3, axis=1, keepdims=True)
    dZ2 = np.multiply(np.dot(W3.T, dZ3), A2 > 0)
    dW2 = 1.0 / m * np.dot(dZ2, A1.T) * 2
    db2 = 1.0 / m * np.sum(dZ2, axis=1, keepdims=True)
    dZ1 = np.multiply(np.dot(W2.T, dZ2), A1 > 0)
    dW1 = 1.0 / m * np.dot(dZ1, X.T)
    db1 = 1.0 / m * np.sum(dZ1, axis=1, keepdims=True)
    return {"W1": dW1, "b1": db1, "W2": dW2, "b2": db2, "W3": dW3, "b3": db3}


FIX = "dW2 = 1 / m * dZ2 @ A1.T"


def backward_fixed(grad_output, X, Y, W1, b1, W2, b2, W3, b3):
    m = X.shape[1]
    A1, A2, A3 = propagate(X, W1, b1, W2, b2, W3, b3)
    dZ3 = grad_output * (A3 - Y) / m
    dZ2 = (W3.T @ dZ3) * (A2 > 0)
    dZ1 = (W2.T @ dZ2) * (A1 > 0)
    return {
        "W1": dZ1 @ X.T,
        "b1": dZ1.sum(axis=1, keepdims=True),
        "W2": dZ2 @ A1.T,
        "b2": dZ2.sum(axis=1, keepdims=True),
        "W3": dZ3 @ A2.T,
        "b3": dZ3.sum(axis=1, keepdims=True),
    }
