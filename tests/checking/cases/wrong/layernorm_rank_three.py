import numpy as np

SOURCE = (
    "https://github.com/flagos-ai/FlagGems/issues/5392: the layer norm's backward takes everything "
    "after the first axis as the normalised row"
)
EXPECT = "wrong-axis"
ACCEPT = []
WHERE = "x"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 4))}


def forward(x):
    mu = x.mean(axis=-1, keepdims=True)
    return (x - mu) / np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + EPS)


def backward(grad_output, x):
    rows = x.reshape(x.shape[0], -1)
    g = grad_output.reshape(rows.shape)
    mu = rows.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(rows.var(axis=1, keepdims=True) + EPS)
    xhat = (rows - mu) * rstd
    dx = rstd * (g - g.mean(axis=1, keepdims=True) - xhat * (g * xhat).mean(axis=1, keepdims=True))
    return {"x": dx.reshape(x.shape)}


FIX = "rows = x.reshape(-1, x.shape[-1])"


def backward_fixed(grad_output, x):
    rows = x.reshape(-1, x.shape[-1])
    g = grad_output.reshape(rows.shape)
    mu = rows.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(rows.var(axis=1, keepdims=True) + EPS)
    xhat = (rows - mu) * rstd
    dx = rstd * (g - g.mean(axis=1, keepdims=True) - xhat * (g * xhat).mean(axis=1, keepdims=True))
    return {"x": dx.reshape(x.shape)}
