import numpy as np

SOURCE = (
    "https://github.com/apache/mxnet/issues/1053: gmean is computed right and then a further term is "
    "added to it"
)
EXPECT = "extra-term"
ACCEPT = []
WHERE = "data"
EPS = 1e-3


def inputs(rng):
    return {"data": rng.normal(size=(5, 3)), "slope": rng.uniform(0.5, 2, size=3)}


def forward(data, slope):
    return slope * (data - data.mean(axis=0)) / np.sqrt(data.var(axis=0) + EPS)


def backward(grad_output, data, slope):
    m = data.shape[0]
    centred = data - data.mean(axis=0)
    istd = 1 / np.sqrt(data.var(axis=0) + EPS)
    gout = grad_output * slope
    gvar = (gout * centred).sum(axis=0) * -0.5 * istd**3
    gmean = -gout.sum(axis=0) * istd
    tmp = gvar * (-2 * data).mean(axis=0)
    gmean += tmp
    grad_in = gout * istd + gvar * 2 * centred / m + gmean / m
    return {"data": grad_in, "slope": (grad_output * centred * istd).sum(axis=0)}


FIX = "drop gmean += tmp"


def backward_fixed(grad_output, data, slope):
    m = data.shape[0]
    centred = data - data.mean(axis=0)
    istd = 1 / np.sqrt(data.var(axis=0) + EPS)
    gout = grad_output * slope
    gvar = (gout * centred).sum(axis=0) * -0.5 * istd**3
    gmean = -gout.sum(axis=0) * istd
    grad_in = gout * istd + gvar * 2 * centred / m + gmean / m
    return {"data": grad_in, "slope": (grad_output * centred * istd).sum(axis=0)}
