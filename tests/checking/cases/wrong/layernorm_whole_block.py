import numpy as np

SOURCE = (
    "https://github.com/flagos-ai/FlagGems/pull/59: the row sums of the layer norm's backward were "
    "taken over the whole block"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "x"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(3, 5)), "w": rng.uniform(0.5, 2, size=5), "b": rng.normal(size=5)}


def stats(x):
    mean = x.mean(axis=1, keepdims=True)
    return mean, 1 / np.sqrt(x.var(axis=1, keepdims=True) + EPS)


def forward(x, w, b):
    mean, rstd = stats(x)
    return (x - mean) * rstd * w + b


def backward(grad_output, x, w, b):
    mean, rstd = stats(x)
    n = x.shape[1]
    xhat = (x - mean) * rstd
    dxhat = grad_output * w
    part2 = np.sum(dxhat)
    part3 = np.sum(dxhat * xhat)
    dx = rstd * (dxhat - (part2 + xhat * part3) / n)
    return {"x": dx, "w": (grad_output * xhat).sum(axis=0), "b": grad_output.sum(axis=0)}


FIX = "both sums with axis=1, keepdims=True"


def backward_fixed(grad_output, x, w, b):
    mean, rstd = stats(x)
    n = x.shape[1]
    xhat = (x - mean) * rstd
    dxhat = grad_output * w
    part2 = np.sum(dxhat, axis=1, keepdims=True)
    part3 = np.sum(dxhat * xhat, axis=1, keepdims=True)
    dx = rstd * (dxhat - (part2 + xhat * part3) / n)
    return {"x": dx, "w": (grad_output * xhat).sum(axis=0), "b": grad_output.sum(axis=0)}
