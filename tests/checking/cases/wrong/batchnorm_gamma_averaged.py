import numpy as np

SOURCE = (
    "https://github.com/cthorey/CS231/issues/9: 'shouldn't dbeta and dgamma be divided by the batch "
    "size?' No."
)
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor"]
WHERE = ["gamma", "beta"]
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(6, 4)), "gamma": rng.uniform(0.5, 1.5, size=4), "beta": rng.normal(size=4)}


def forward(x, gamma, beta):
    xc = x - x.mean(axis=0)
    std = np.sqrt((xc**2).mean(axis=0) + EPS)
    return gamma * xc / std + beta


def backward(grad_output, x, gamma, beta):
    N = x.shape[0]
    xc = x - x.mean(axis=0)
    std = np.sqrt((xc**2).mean(axis=0) + EPS)
    xn = xc / std
    dbeta = np.sum(grad_output, axis=0) / N
    dgamma = np.sum(xn * grad_output, axis=0) / N
    dxn = gamma * grad_output
    dx = (dxn - dxn.mean(axis=0) - xn * (dxn * xn).mean(axis=0)) / std
    return {"x": dx, "gamma": dgamma, "beta": dbeta}


FIX = "dbeta = sum(g), dgamma = sum(g * xn): no division"


def backward_fixed(grad_output, x, gamma, beta):
    xc = x - x.mean(axis=0)
    std = np.sqrt((xc**2).mean(axis=0) + EPS)
    xn = xc / std
    dxn = gamma * grad_output
    dx = (dxn - dxn.mean(axis=0) - xn * (dxn * xn).mean(axis=0)) / std
    return {"x": dx, "gamma": np.sum(xn * grad_output, axis=0), "beta": np.sum(grad_output, axis=0)}
