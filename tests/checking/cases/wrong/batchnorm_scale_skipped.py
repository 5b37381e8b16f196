import numpy as np

SOURCE = (
    "https://github.com/denizyuret/Knet.jl/issues/288: on the CPU the batch norm multiplies dy by the "
    "scale, then goes on with the unscaled product"
)
EXPECT = "missing-local-derivative"
ACCEPT = []
WHERE = "x"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(7, 3)), "g": rng.uniform(0.5, 2.5, size=3), "b": rng.normal(size=3)}


def forward(x, g, b):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + EPS) * g + b


def backward(grad_output, x, g, b):
    m = len(x)
    xmu = x - x.mean(0)
    ivar = 1 / np.sqrt(x.var(0) + EPS)
    dy = grad_output
    dyivar = dy * ivar
    dg = (xmu * dyivar).sum(0)
    db = dy.sum(0)
    dy = g * dy
    dsigma2 = -0.5 * (dyivar * xmu * ivar**2).sum(0)
    dmu = -dyivar.sum(0) - 2 * dsigma2 * xmu.sum(0) / m
    dx = dyivar + dsigma2 * 2 * xmu / m + dmu / m
    return {"x": dx, "g": dg, "b": db}


FIX = "dyivar = g * dy * ivar for the part that leads to dx"


def backward_fixed(grad_output, x, g, b):
    m = len(x)
    xmu = x - x.mean(0)
    ivar = 1 / np.sqrt(x.var(0) + EPS)
    dxhat = g * grad_output
    dsigma2 = -0.5 * (dxhat * xmu).sum(0) * ivar**3
    dmu = -(dxhat * ivar).sum(0)
    dx = dxhat * ivar + dsigma2 * 2 * xmu / m + dmu / m
    return {"x": dx, "g": (grad_output * xmu * ivar).sum(0), "b": grad_output.sum(0)}
