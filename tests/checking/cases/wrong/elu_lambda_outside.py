import numpy as np

SOURCE = (
    "https://github.com/mlpack/mlpack/pull/1540: SELU's negative branch as lambda * (y + alpha), where "
    "y already contains lambda"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["wrong-evaluation-point", "constant-factor"]
WHERE = "x"
ALPHA, LAMBDA = 1.6733, 1.0507


def inputs(rng):
    return {"x": 2 * rng.normal(size=(3, 4))}


def forward(x):
    return LAMBDA * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0)))


def backward(grad_output, x):
    y = forward(x)
    return {"x": grad_output * np.where(y > 0, LAMBDA, LAMBDA * (y + ALPHA))}


FIX = "np.where(y > 0, LAMBDA, y + LAMBDA * ALPHA)"


def backward_fixed(grad_output, x):
    y = forward(x)
    return {"x": grad_output * np.where(y > 0, LAMBDA, y + LAMBDA * ALPHA)}
