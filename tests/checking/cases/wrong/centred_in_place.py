import numpy as np  # noqa: F401

SOURCE = (
    "backward centres the data in place (x -= mean), so the caller's batch is changed and the weights "
    "see other inputs"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)) + 1.0, "W": rng.normal(size=(3, 2)), "gain": rng.normal(size=3)}


def forward(x, W, gain):
    return x @ W + ((x - x.mean(axis=0)) * gain).sum(axis=1, keepdims=True)


def backward(grad_output, x, W, gain):
    row = grad_output.sum(axis=1, keepdims=True)
    xc = x
    xc -= x.mean(axis=0)
    dgain = (row * xc).sum(axis=0)
    dxc = row * gain
    return {"x": grad_output @ W.T + dxc - dxc.mean(axis=0), "W": x.T @ grad_output, "gain": dgain}


FIX = "xc = x - x.mean(axis=0)"


def backward_fixed(grad_output, x, W, gain):
    row = grad_output.sum(axis=1, keepdims=True)
    xc = x - x.mean(axis=0)
    dgain = (row * xc).sum(axis=0)
    dxc = row * gain
    return {"x": grad_output @ W.T + dxc - dxc.mean(axis=0), "W": x.T @ grad_output, "gain": dgain}
