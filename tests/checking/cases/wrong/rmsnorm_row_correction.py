import numpy as np

SOURCE = (
    "https://github.com/BobMcDear/attorch/issues/17: the per-row correction of RMSNorm lacks [:, None] "
    "and is applied to columns when rows and features are equally many"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "x"
EPS = 1e-6


def inputs(rng):
    return {"x": rng.normal(size=(4, 4)), "w": rng.uniform(0.5, 2, size=4)}


def forward(x, w):
    return x / np.sqrt((x * x).mean(axis=1) + EPS)[:, None] * w


def backward(grad_output, x, w):
    inv = 1 / np.sqrt((x * x).mean(axis=1) + EPS)
    gw = grad_output * w
    corr = (gw * x).sum(axis=1) * inv**3 / x.shape[1]
    dx = gw * inv[:, None] - x * corr
    dw = (grad_output * x * inv[:, None]).sum(axis=0)
    return {"x": dx, "w": dw}


FIX = "dx = gw * inv[:, None] - x * corr[:, None]"


def backward_fixed(grad_output, x, w):
    inv = 1 / np.sqrt((x * x).mean(axis=1) + EPS)
    gw = grad_output * w
    corr = (gw * x).sum(axis=1) * inv**3 / x.shape[1]
    dx = gw * inv[:, None] - x * corr[:, None]
    dw = (grad_output * x * inv[:, None]).sum(axis=0)
    return {"x": dx, "w": dw}
