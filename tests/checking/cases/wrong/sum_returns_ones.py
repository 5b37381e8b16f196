import numpy as np

SOURCE = (
    "https://github.com/haydnv/tinychain/pull/142 (review): Sum's backward is ones_like(input), "
    "whatever comes after it"
)
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4))}


def forward(x):
    return x.sum(axis=1)


def backward(grad_output, x):
    return {"x": np.ones_like(x)}


FIX = "dx = grad_output[:, None] * np.ones_like(x)"


def backward_fixed(grad_output, x):
    return {"x": grad_output[:, None] * np.ones_like(x)}
