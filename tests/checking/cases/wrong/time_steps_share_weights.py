import numpy as np

SOURCE = "unrolled RNN: dW = ... in the loop over time, so the first step's gradient is all that remains"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = ["W", "U"]


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2)), "U": rng.normal(size=(2, 2))}


def unroll(x, W, U):
    h = [np.full(U.shape[0], 0.5)]
    for t in range(len(x)):
        h.append(np.tanh(x[t] @ W + h[t] @ U))
    return h


def forward(x, W, U):
    return unroll(x, W, U)[-1]


def backward(grad_output, x, W, U):
    h = unroll(x, W, U)
    grads = {"x": np.zeros_like(x), "W": np.zeros_like(W), "U": np.zeros_like(U)}
    dh = grad_output
    for t in range(len(x) - 1, -1, -1):
        da = dh * (1 - h[t + 1] ** 2)
        step = {"W": np.outer(x[t], da), "U": np.outer(h[t], da)}
        grads.update(step)
        grads["x"][t] = W @ da
        dh = U @ da
    return grads


FIX = "grads[name] += step[name]"


def backward_fixed(grad_output, x, W, U):
    h = unroll(x, W, U)
    grads = {"x": np.zeros_like(x), "W": np.zeros_like(W), "U": np.zeros_like(U)}
    dh = grad_output
    for t in range(len(x) - 1, -1, -1):
        da = dh * (1 - h[t + 1] ** 2)
        grads["W"] += np.outer(x[t], da)
        grads["U"] += np.outer(h[t], da)
        grads["x"][t] = W @ da
        dh = U @ da
    return grads
