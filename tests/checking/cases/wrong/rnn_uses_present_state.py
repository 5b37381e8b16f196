import numpy as np

SOURCE = "vanilla RNN by hand: the recurrent weight's gradient takes h[t] where the step read h[t-1]"
EXPECT = "wrong-evaluation-point"
ACCEPT = []
WHERE = "U"


def inputs(rng):
    return {
        "x": rng.normal(size=(5, 2, 3)),
        "W": rng.normal(size=(3, 4)) / 2,
        "U": rng.normal(size=(4, 4)) / 2,
    }


def run(x, W, U):
    h = {-1: np.zeros((x.shape[1], U.shape[0]))}
    for t in range(x.shape[0]):
        h[t] = np.tanh(x[t] @ W + h[t - 1] @ U)
    return h


def forward(x, W, U):
    return run(x, W, U)[x.shape[0] - 1]


def backward(grad_output, x, W, U):
    h = run(x, W, U)
    dx, dW, dU = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U)
    dh = grad_output
    for t in range(x.shape[0] - 1, -1, -1):
        dz = dh * (1 - h[t] ** 2)
        dx[t] = dz @ W.T
        dW += x[t].T @ dz
        dU += h[t].T @ dz
        dh = dz @ U.T
    return {"x": dx, "W": dW, "U": dU}


FIX = "dU += h[t - 1].T @ dz"


def backward_fixed(grad_output, x, W, U):
    h = run(x, W, U)
    dx, dW, dU = np.zeros_like(x), np.zeros_like(W), np.zeros_like(U)
    dh = grad_output
    for t in range(x.shape[0] - 1, -1, -1):
        dz = dh * (1 - h[t] ** 2)
        dx[t] = dz @ W.T
        dW += x[t].T @ dz
        dU += h[t - 1].T @ dz
        dh = dz @ U.T
    return {"x": dx, "W": dW, "U": dU}
