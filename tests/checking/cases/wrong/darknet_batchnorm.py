import numpy as np

SOURCE = (
    "https://github.com/mlpack/mlpack/issues/1923 and caffe's early BN "
    "(https://github.com/BVLC/caffe/pull/1891): a path through the mean or the variance is left out"
)
EXPECT = "missing-term"
ACCEPT = []
WHERE = "x"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(5, 2, 3)), "gamma": rng.uniform(0.5, 2, size=(1, 2, 1))}


def forward(x, gamma):
    mu = x.mean(axis=(0, 2), keepdims=True)
    var = x.var(axis=(0, 2), keepdims=True)
    return gamma * (x - mu) / np.sqrt(var + EPS)


def backward(grad_output, x, gamma):
    m = x.shape[0] * x.shape[2]
    xc = x - x.mean(axis=(0, 2), keepdims=True)
    ivar = 1 / np.sqrt((xc**2).mean(axis=(0, 2), keepdims=True) + EPS)
    dxhat = grad_output * gamma
    dvar = -0.5 * (dxhat * xc).sum(axis=(0, 2), keepdims=True) * ivar**3
    dx = dxhat * ivar + dvar * 2 * xc / m
    return {"x": dx, "gamma": (grad_output * xc * ivar).sum(axis=(0, 2), keepdims=True)}


FIX = "dmu = -sum(dxhat * ivar); dx = dxhat * ivar + dvar * 2 * xc / m + dmu / m"


def backward_fixed(grad_output, x, gamma):
    m = x.shape[0] * x.shape[2]
    xc = x - x.mean(axis=(0, 2), keepdims=True)
    ivar = 1 / np.sqrt((xc**2).mean(axis=(0, 2), keepdims=True) + EPS)
    dxhat = grad_output * gamma
    dvar = -0.5 * (dxhat * xc).sum(axis=(0, 2), keepdims=True) * ivar**3
    dmu = -(dxhat * ivar).sum(axis=(0, 2), keepdims=True)
    dx = dxhat * ivar + dvar * 2 * xc / m + dmu / m
    return {"x": dx, "gamma": (grad_output * xc * ivar).sum(axis=(0, 2), keepdims=True)}
