import numpy as np

SOURCE = "Hebbian and metric-learning code: the batch's mean pair stands for the mean of the pairs"
EXPECT = "averaged-batch"
ACCEPT = []
WHERE = "M"


def inputs(rng):
    return {"a": rng.normal(size=(5, 3)), "b": rng.normal(size=(5, 3)), "M": rng.normal(size=(3, 3))}


def forward(a, b, M):
    return np.mean([x @ M @ y for x, y in zip(a, b, strict=True)])


def backward(grad_output, a, b, M):
    n = len(a)
    return {
        "a": grad_output * b @ M.T / n,
        "b": grad_output * a @ M / n,
        "M": grad_output * a.mean(axis=0)[:, None] * b.mean(axis=0)[None, :],
    }


FIX = "dM = grad_output * a.T @ b / n"


def backward_fixed(grad_output, a, b, M):
    n = len(a)
    return {"a": grad_output * b @ M.T / n, "b": grad_output * a @ M / n, "M": grad_output * a.T @ b / n}
