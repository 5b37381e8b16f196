import numpy as np

SOURCE = "GRU step by hand: h' = (1-z)*n + z*h; the direct path from h through z*h is left out of dh"
EXPECT = "missing-term"
ACCEPT = []
WHERE = "h"


def sig(a):
    return 1 / (1 + np.exp(-a))


def inputs(rng):
    return {
        "x": rng.normal(size=(3, 2)),
        "h": rng.normal(size=(3, 4)),
        "Wz": rng.normal(size=(6, 4)),
        "Wn": rng.normal(size=(6, 4)),
    }


def gates(x, h, Wz, Wn):
    xh = np.hstack([x, h])
    return xh, sig(xh @ Wz), np.tanh(xh @ Wn)


def forward(x, h, Wz, Wn):
    _, z, n = gates(x, h, Wz, Wn)
    return (1 - z) * n + z * h


def backward(grad_output, x, h, Wz, Wn):
    xh, z, n = gates(x, h, Wz, Wn)
    dz = grad_output * (h - n) * z * (1 - z)
    dn = grad_output * (1 - z) * (1 - n**2)
    dxh = dz @ Wz.T + dn @ Wn.T
    cut = x.shape[1]
    return {"x": dxh[:, :cut], "h": dxh[:, cut:], "Wz": xh.T @ dz, "Wn": xh.T @ dn}


FIX = "dh = dxh[:, cut:] + grad_output * z"


def backward_fixed(grad_output, x, h, Wz, Wn):
    xh, z, n = gates(x, h, Wz, Wn)
    dz = grad_output * (h - n) * z * (1 - z)
    dn = grad_output * (1 - z) * (1 - n**2)
    dxh = dz @ Wz.T + dn @ Wn.T
    cut = x.shape[1]
    return {"x": dxh[:, :cut], "h": dxh[:, cut:] + grad_output * z, "Wz": xh.T @ dz, "Wn": xh.T @ dn}
