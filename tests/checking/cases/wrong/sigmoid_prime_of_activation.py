import numpy as np

SOURCE = "sigmoid_prime(a) applied to activations: the function expects z and squashes once more"
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["X", "w1", "w2"]


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def sigmoid_prime(z):
    return sigmoid(z) * (1 - sigmoid(z))


def inputs(rng):
    return {"X": rng.normal(size=(4, 2)), "w1": rng.normal(size=(2, 3)), "w2": rng.normal(size=(3, 1))}


def forward(X, w1, w2):
    return sigmoid(sigmoid(X @ w1) @ w2)


def backward(grad_output, X, w1, w2):
    hidden = sigmoid(X @ w1)
    output = sigmoid(hidden @ w2)
    d_out = grad_output * sigmoid_prime(output)
    d_hid = (d_out @ w2.T) * sigmoid_prime(hidden)
    return {"X": d_hid @ w1.T, "w1": X.T @ d_hid, "w2": hidden.T @ d_out}


FIX = "sigmoid_prime of the pre-activations, or a * (1 - a)"


def backward_fixed(grad_output, X, w1, w2):
    hidden = sigmoid(X @ w1)
    output = sigmoid(hidden @ w2)
    d_out = grad_output * output * (1 - output)
    d_hid = (d_out @ w2.T) * hidden * (1 - hidden)
    return {"X": d_hid @ w1.T, "w1": X.T @ d_hid, "w2": hidden.T @ d_out}
