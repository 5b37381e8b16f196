import numpy as np

SOURCE = "mixed precision: the bias gradient is accumulated in float16"
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "b"


def inputs(rng):
    return {"x": rng.normal(size=(400, 2)), "b": rng.normal(size=2)}


def forward(x, b):
    return x + b


def backward(grad_output, x, b):
    total = np.zeros(b.shape, np.float16)
    for row in grad_output:
        total += row.astype(np.float16)
    return {"x": grad_output.copy(), "b": total.astype(b.dtype)}


FIX = "accumulate in the dtype of b"


def backward_fixed(grad_output, x, b):
    return {"x": grad_output.copy(), "b": grad_output.sum(axis=0)}
