import numpy as np

SOURCE = (
    "https://github.com/tracel-ai/burn/issues/5533 (also pytorch#773, tinygrad#17404): prod's gradient "
    "is product / input, 0 / 0 where an input is zero"
)
EXPECT = "dtype-or-overflow"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    x = rng.normal(size=(3, 4))
    x[0, 1] = 0.0
    x[2, [0, 3]] = 0.0
    return {"x": x}


def forward(x):
    return np.prod(x, axis=1)


def backward(grad_output, x):
    with np.errstate(all="ignore"):
        return {"x": (grad_output * np.prod(x, axis=1))[:, None] / x}


FIX = "multiply all the others: for each j, g * prod(delete(x, j))"


def backward_fixed(grad_output, x):
    d = np.empty_like(x)
    for j in range(x.shape[1]):
        d[:, j] = grad_output * np.prod(np.delete(x, j, axis=1), axis=1)
    return {"x": d}
