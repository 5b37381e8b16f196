import numpy as np

SOURCE = "max pooling by the mask x == max: where entries tie, each is given the whole gradient"
EXPECT = "extra-term"
ACCEPT: list[str] = []
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


FIX = "share it among those that tie, or give it to the first: moved together, they move the maximum once"


def backward_fixed(grad_output, x):
    mask = x == np.max(x, axis=1, keepdims=True)
    return {"x": grad_output[:, None] * mask / mask.sum(axis=1, keepdims=True)}
