import numpy as np

SOURCE = "nearest-neighbour upsampling with np.repeat, undone as if it had been np.tile"
EXPECT = "wrong-axis"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"
K = 3


def inputs(rng):
    return {"x": rng.normal(size=(2, 4))}


def forward(x):
    return np.repeat(x, K, axis=1)


def backward(grad_output, x):
    n, d = x.shape
    return {"x": grad_output.reshape(n, K, d).sum(axis=1)}


FIX = "dx = grad_output.reshape(n, d, K).sum(axis=2)"


def backward_fixed(grad_output, x):
    n, d = x.shape
    return {"x": grad_output.reshape(n, d, K).sum(axis=2)}
