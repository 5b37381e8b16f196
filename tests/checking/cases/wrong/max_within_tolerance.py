import numpy as np

SOURCE = (
    "https://github.com/mni-ml/framework/pull/22 (review): the winners of a maximum are found with "
    "is_close and a loose tolerance, near misses get a gradient too"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["extra-term"]
WHERE = "x"


def inputs(rng):
    x = rng.normal(size=(4, 5))
    x[:, 3] = x.max(axis=1) - 0.004
    return {"x": x}


def forward(x):
    return x.max(axis=1)


def backward(grad_output, x):
    mask = np.isclose(x, x.max(axis=1, keepdims=True), rtol=0, atol=1e-2)
    return {"x": grad_output[:, None] * mask}


FIX = "mask = x == x.max(axis=1, keepdims=True)"


def backward_fixed(grad_output, x):
    mask = x == x.max(axis=1, keepdims=True)
    return {"x": grad_output[:, None] * mask}
