import numpy as np

TRICK = "four tanh layers in float32: rounding adds up through the layers"


def inputs(rng):
    f = np.float32
    out = {f"W{i}": (rng.normal(size=(6, 6)) / 2).astype(f) for i in range(4)}
    return {"x": rng.normal(size=(3, 6)).astype(f), **out}


def activations(x, weights):
    a = [x]
    for W in weights:
        a.append(np.tanh(a[-1] @ W))
    return a


def forward(x, W0, W1, W2, W3):
    return activations(x, (W0, W1, W2, W3))[-1]


def backward(grad_output, x, W0, W1, W2, W3):
    weights = (W0, W1, W2, W3)
    a = activations(x, weights)
    grads, d = {}, grad_output
    for i in reversed(range(4)):
        dz = d * (1 - a[i + 1] ** 2)
        grads[f"W{i}"] = (a[i].T @ dz).astype(x.dtype)
        d = dz @ weights[i].T
    grads["x"] = d.astype(x.dtype)
    return grads
