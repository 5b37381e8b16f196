import numpy as np

SOURCE = (
    "https://github.com/rohitg00/ai-engineering-from-scratch/pull/17 (review): backprop ignores the "
    "dropout mask and its 1/(1-p)"
)
EXPECT = "missing-local-derivative"
ACCEPT = []
WHERE = ["x", "W1"]
P = 0.4


def inputs(rng):
    return {
        "x": rng.normal(size=(4, 3)),
        "W1": rng.normal(size=(3, 5)),
        "W2": rng.normal(size=(5, 2)),
        "keep": (rng.uniform(size=(4, 5)) > P).astype(int),
    }


def forward(x, W1, W2, keep):
    h = np.maximum(x @ W1, 0) * keep / (1 - P)
    return h @ W2


def backward(grad_output, x, W1, W2, keep):
    z = x @ W1
    h = np.maximum(z, 0) * keep / (1 - P)
    dz = (grad_output @ W2.T) * (z > 0)
    return {"x": dz @ W1.T, "W1": x.T @ dz, "W2": h.T @ grad_output}


FIX = "dz = (grad_output @ W2.T) * keep / (1 - P) * (z > 0)"


def backward_fixed(grad_output, x, W1, W2, keep):
    z = x @ W1
    h = np.maximum(z, 0) * keep / (1 - P)
    dz = (grad_output @ W2.T) * keep / (1 - P) * (z > 0)
    return {"x": dz @ W1.T, "W1": x.T @ dz, "W2": h.T @ grad_output}
