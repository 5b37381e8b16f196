import numpy as np

SOURCE = (
    "https://github.com/tenstorrent/tt-metal/issues/55585 (also "
    "https://github.com/HIPS/autograd/issues/151): x / norm(x) at an all-zero row"
)
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    x = rng.normal(size=(4, 3))
    x[1] = 0.0
    return {"x": x}


def forward(x):
    return np.sqrt((x**2).sum(axis=1))


def backward(grad_output, x):
    with np.errstate(invalid="ignore"):
        return {"x": grad_output[:, None] * x / forward(x)[:, None]}


FIX = "divide by the norm where it is positive, 0 elsewhere (a subgradient)"


def backward_fixed(grad_output, x):
    norm = forward(x)[:, None]
    return {"x": grad_output[:, None] * x / np.where(norm > 0, norm, 1.0)}
