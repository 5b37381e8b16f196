import numpy as np

SOURCE = "the mask of a maximum compares float64 values with a float32 copy of the output: hardly ever equal"
EXPECT = "zero-gradient"
ACCEPT = ["dtype-or-overflow"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 6))}


def forward(x):
    return np.max(x, axis=1)


def backward(grad_output, x):
    saved = forward(x).astype(np.float32)
    mask = x == saved[:, None]
    return {"x": grad_output[:, None] * mask}


FIX = "saved = forward(x), in x's own dtype"


def backward_fixed(grad_output, x):
    mask = x == forward(x)[:, None]
    return {"x": grad_output[:, None] * mask}
