import numpy as np

SOURCE = (
    "shuffled rows: the backward gathers with the permutation where it should scatter (apply its inverse)"
)
EXPECT = "transposed"
ACCEPT = ["wrong-evaluation-point"]
WHERE = "rows"


def inputs(rng):
    return {"rows": rng.normal(size=(5, 2)), "perm": np.array([2, 0, 3, 4, 1])}


def forward(rows, perm):
    return rows[perm]


def backward(grad_output, rows, perm):
    return {"rows": grad_output[perm]}


FIX = "grad_output[np.argsort(perm)]"


def backward_fixed(grad_output, rows, perm):
    return {"rows": grad_output[np.argsort(perm)]}
