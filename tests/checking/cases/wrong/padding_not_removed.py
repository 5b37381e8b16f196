import numpy as np

SOURCE = "padded convolution: the gradient of the padded input is returned, border included"
EXPECT = "wrong-shape"
ACCEPT = []
WHERE = "x"
PAD = 1


def inputs(rng):
    return {"x": rng.normal(size=(4, 5)), "k": rng.normal(size=(3, 3))}


def forward(x, k):
    xp = np.pad(x, PAD)
    out = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            out = out + k[i, j] * xp[i : i + x.shape[0], j : j + x.shape[1]]
    return out


def backward(grad_output, x, k):
    xp = np.pad(x, PAD)
    dxp, dk = np.zeros_like(xp), np.zeros_like(k)
    h, w = x.shape
    for i in range(3):
        for j in range(3):
            dxp[i : i + h, j : j + w] += k[i, j] * grad_output
            dk[i, j] = np.sum(grad_output * xp[i : i + h, j : j + w])
    return {"x": dxp, "k": dk}


FIX = "dx = dxp[PAD:-PAD, PAD:-PAD]"


def backward_fixed(grad_output, x, k):
    xp = np.pad(x, PAD)
    dxp, dk = np.zeros_like(xp), np.zeros_like(k)
    h, w = x.shape
    for i in range(3):
        for j in range(3):
            dxp[i : i + h, j : j + w] += k[i, j] * grad_output
            dk[i, j] = np.sum(grad_output * xp[i : i + h, j : j + w])
    return {"x": dxp[PAD:-PAD, PAD:-PAD], "k": dk}
