import numpy as np

SOURCE = (
    "min-char-rnn clips its gradients against explosion; moved into the layer, the clip makes the "
    "gradient wrong"
)
EXPECT = "extra-term"
ACCEPT = ["wrong-local-derivative", "ignores-upstream"]
WHERE = ["x", "W"]


def inputs(rng):
    return {"x": 2 * rng.normal(size=(6, 3)), "W": 2 * rng.normal(size=(3, 4))}


def forward(x, W):
    return (x @ W) ** 2


def backward(grad_output, x, W):
    dz = 2 * grad_output * (x @ W)
    dz = np.clip(dz, -1, 1)
    return {"x": dz @ W.T, "W": x.T @ dz}


FIX = "no clip in the backward pass"


def backward_fixed(grad_output, x, W):
    dz = 2 * grad_output * (x @ W)
    return {"x": dz @ W.T, "W": x.T @ dz}
