import numpy as np

SOURCE = (
    "a maximum with ties where each winner is given the full slope: entry by entry within the left and right "
    "slopes, and together more than forward moves when the winners move together"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["extra-term"]
WHERE = "x"


def inputs(rng):
    x = rng.normal(size=(3, 4))
    x[1] = 0.5
    x[2, :2] = 4.0
    return {"x": x}


def forward(x):
    return np.max(x, axis=1)


def backward(grad_output, x):
    return {"x": grad_output[:, None] * (x == np.max(x, axis=1, keepdims=True))}


FIX = "divide by the number of winners"


def backward_fixed(grad_output, x):
    winners = x == np.max(x, axis=1, keepdims=True)
    return {"x": grad_output[:, None] * winners / winners.sum(axis=1, keepdims=True)}
