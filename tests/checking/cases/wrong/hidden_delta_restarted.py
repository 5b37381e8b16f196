import numpy as np

SOURCE = (
    "two-layer network: the output layer uses the incoming gradient, the hidden layer starts again from"
    " its own slope"
)
EXPECT = "ignores-upstream"
ACCEPT = ["missing-local-derivative"]
WHERE = ["x", "W1"]


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W1": rng.normal(size=(3, 4)), "W2": rng.normal(size=(4, 2))}


def forward(x, W1, W2):
    return np.tanh(x @ W1) @ W2


def backward(grad_output, x, W1, W2):
    h = np.tanh(x @ W1)
    dW2 = h.T @ grad_output
    dh = np.ones_like(grad_output) @ W2.T
    dz = dh * (1 - h**2)
    return {"x": dz @ W1.T, "W1": x.T @ dz, "W2": dW2}


FIX = "dh = grad_output @ W2.T"


def backward_fixed(grad_output, x, W1, W2):
    h = np.tanh(x @ W1)
    dz = (grad_output @ W2.T) * (1 - h**2)
    return {"x": dz @ W1.T, "W1": x.T @ dz, "W2": h.T @ grad_output}
