import numpy as np

SOURCE = (
    "https://github.com/bshillingford/autobw.torch/pull/7 (kin): a cache filled once, so gradients are "
    "right the first time only"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = ["wrong-evaluation-point"]
WHERE = ["x", "W"]
CACHE = {}


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2))}


def forward(x, W):
    return np.tanh(x @ W)


def backward(grad_output, x, W):
    if "h" not in CACHE:
        CACHE["h"] = np.tanh(x @ W)
    dz = grad_output * (1 - CACHE["h"] ** 2)
    return {"x": dz @ W.T, "W": x.T @ dz}


FIX = "compute h from the arguments at every call"


def backward_fixed(grad_output, x, W):
    dz = grad_output * (1 - np.tanh(x @ W) ** 2)
    return {"x": dz @ W.T, "W": x.T @ dz}
