import numpy as np

TRICK = (
    "products of rows with one zero, two zeros and none; the product of the others by prefixes and suffixes"
)


def inputs(rng):
    x = rng.uniform(0.5, 2, size=(3, 4))
    x[0, 2] = 0.0
    x[1, [0, 3]] = 0.0
    return {"x": x}


def forward(x):
    return x.prod(axis=1)


def backward(grad_output, x):
    ones = np.ones((len(x), 1))
    before = np.cumprod(np.hstack([ones, x[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, x[:, :0:-1]]), axis=1)[:, ::-1]
    return {"x": grad_output[:, None] * before * after}
