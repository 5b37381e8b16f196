import numpy as np  # noqa: F401

SOURCE = (
    "https://github.com/udacity/deep-learning-v2-pytorch/pull/158: the gradient of mean(x**2) is given "
    "as x/2, true for four elements only"
)
EXPECT = "constant-factor"
ACCEPT = ["wrong-local-derivative", "batch-mean-vs-sum"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(2, 3))}


def forward(x):
    y = x**2
    return y.mean()


def backward(grad_output, x):
    return {"x": grad_output * x / 2}


FIX = "dx = grad_output * 2 * x / x.size"


def backward_fixed(grad_output, x):
    return {"x": grad_output * 2 * x / x.size}
