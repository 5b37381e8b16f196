import numpy as np

SOURCE = "two heads cut from one layer, mean first in the forward, log-variance first in the backward"
EXPECT = "swapped-gradients"
ACCEPT = []
WHERE = ["Wm", "Wv"]


def inputs(rng):
    return {"h": rng.normal(size=(4, 3)), "Wm": rng.normal(size=(3, 2)), "Wv": rng.normal(size=(3, 2))}


def forward(h, Wm, Wv):
    mean, logvar = h @ Wm, h @ Wv
    return np.concatenate([mean, np.exp(logvar)], axis=1)


def backward(grad_output, h, Wm, Wv):
    dmean = grad_output[:, :2]
    dlogvar = grad_output[:, 2:] * np.exp(h @ Wv)
    dh = dmean @ Wm.T + dlogvar @ Wv.T
    dWv, dWm = (h.T @ d for d in (dmean, dlogvar))
    return {"h": dh, "Wm": dWm, "Wv": dWv}


FIX = "dWm, dWv = (h.T @ d for d in (dmean, dlogvar))"


def backward_fixed(grad_output, h, Wm, Wv):
    dmean = grad_output[:, :2]
    dlogvar = grad_output[:, 2:] * np.exp(h @ Wv)
    dh = dmean @ Wm.T + dlogvar @ Wv.T
    return {"h": dh, "Wm": h.T @ dmean, "Wv": h.T @ dlogvar}
