import numpy as np

SOURCE = (
    "cumsum's backward as 'how many outputs contain x[i]': right only when every incoming gradient is one"
)
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=6)}


def forward(x):
    return np.cumsum(x)


def backward(grad_output, x):
    return {"x": np.arange(len(x), 0, -1).astype(float)}


FIX = "np.cumsum(grad_output[::-1])[::-1]"


def backward_fixed(grad_output, x):
    return {"x": np.cumsum(grad_output[::-1])[::-1]}
