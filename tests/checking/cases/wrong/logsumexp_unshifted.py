import numpy as np

SOURCE = (
    "a stable forward (maximum taken out) with the textbook backward exp(x) / sum(exp(x)), which overflows"
)
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": np.array([[800.0, 799.0, 20.0], [1.0, 2.0, 0.5]]) + rng.normal(size=(2, 3))}


def forward(x):
    m = np.max(x, axis=-1)
    return m + np.log(np.sum(np.exp(x - m[:, None]), axis=-1))


def backward(grad_output, x):
    with np.errstate(all="ignore"):
        e = np.exp(x)
        return {"x": grad_output[:, None] * e / e.sum(axis=-1, keepdims=True)}


FIX = "e = np.exp(x - x.max(axis=-1, keepdims=True))"


def backward_fixed(grad_output, x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"x": grad_output[:, None] * e / e.sum(axis=-1, keepdims=True)}
