import numpy as np

SOURCE = "off by one: range(T - 1, 0, -1) never visits the first time step"
EXPECT = "missing-term"
ACCEPT = ["zero-gradient"]
WHERE = ["x", "W", "U"]


def inputs(rng):
    return {"x": rng.normal(size=(4, 2)), "W": rng.normal(size=(2, 3)), "U": rng.normal(size=(3, 3)) / 2}


def states(x, W, U):
    h = np.ones((len(x) + 1, U.shape[0]))
    for t in range(len(x)):
        h[t + 1] = np.tanh(x[t] @ W + h[t] @ U)
    return h


def forward(x, W, U):
    h = np.ones(U.shape[0])
    for t in range(len(x)):
        h = np.tanh(x[t] @ W + h @ U)
    return h


def backward(grad_output, x, W, U):
    h = states(x, W, U)
    dx, dW, dU, dh = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U), grad_output
    for t in range(len(x) - 1, 0, -1):
        da = dh * (1 - h[t + 1] ** 2)
        dx[t], dh = W @ da, U @ da
        dW += np.outer(x[t], da)
        dU += np.outer(h[t], da)
    return {"x": dx, "W": dW, "U": dU}


FIX = "range(len(x) - 1, -1, -1)"


def backward_fixed(grad_output, x, W, U):
    h = states(x, W, U)
    dx, dW, dU, dh = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U), grad_output
    for t in range(len(x) - 1, -1, -1):
        da = dh * (1 - h[t + 1] ** 2)
        dx[t], dh = W @ da, U @ da
        dW += np.outer(x[t], da)
        dU += np.outer(h[t], da)
    return {"x": dx, "W": dW, "U": dU}
