import numpy as np

SOURCE = "convolution loops: dx[i:i+k] = ... instead of +=, overlapping windows overwrite each other"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(2, 7)), "w": rng.normal(size=3)}


def forward(x, w):
    n = x.shape[1] - len(w) + 1
    return np.stack([x[:, i : i + len(w)] @ w for i in range(n)], axis=1)


def backward(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    k = len(w)
    for i in range(grad_output.shape[1]):
        dx[:, i : i + k] = grad_output[:, i, None] * w
        dw += grad_output[:, i] @ x[:, i : i + k]
    return {"x": dx, "w": dw}


FIX = "dx[:, i:i+k] += ..."


def backward_fixed(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    k = len(w)
    for i in range(grad_output.shape[1]):
        dx[:, i : i + k] += grad_output[:, i, None] * w
        dw += grad_output[:, i] @ x[:, i : i + k]
    return {"x": dx, "w": dw}
