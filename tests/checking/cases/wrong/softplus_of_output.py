import numpy as np

SOURCE = (
    "https://github.com/zserge/nanonn/issues/4: softplus' derivative 1/(1+exp(-x)) is evaluated at the "
    "layer's output"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["x", "w"]


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=3)}


def forward(x, w):
    return np.log1p(np.exp(x @ w))


def backward(grad_output, x, w):
    y = forward(x, w)
    dz = grad_output / (1 + np.exp(-y))
    return {"x": np.outer(dz, w), "w": dz @ x}


FIX = "dz = grad_output / (1 + np.exp(-(x @ w)))"


def backward_fixed(grad_output, x, w):
    dz = grad_output / (1 + np.exp(-(x @ w)))
    return {"x": np.outer(dz, w), "w": dz @ x}
