import numpy as np

SOURCE = "an Elman step with batch size equal to the hidden size: the state's gradient is dz * Wh"
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = []
WHERE = "h"


def inputs(rng):
    return {
        "x": rng.normal(size=(3, 2)),
        "h": rng.normal(size=(3, 3)),
        "Wx": rng.normal(size=(2, 3)),
        "Wh": rng.normal(size=(3, 3)),
    }


def forward(x, h, Wx, Wh):
    return np.tanh(x @ Wx + h @ Wh)


def backward(grad_output, x, h, Wx, Wh):
    out = np.tanh(x @ Wx + h @ Wh)
    dz = grad_output * (1 - out * out)
    return {"x": dz @ Wx.T, "h": dz * Wh.T, "Wx": x.T @ dz, "Wh": h.T @ dz}


FIX = "dh = dz @ Wh.T"


def backward_fixed(grad_output, x, h, Wx, Wh):
    out = np.tanh(x @ Wx + h @ Wh)
    dz = grad_output * (1 - out * out)
    return {"x": dz @ Wx.T, "h": dz @ Wh.T, "Wx": x.T @ dz, "Wh": h.T @ dz}
