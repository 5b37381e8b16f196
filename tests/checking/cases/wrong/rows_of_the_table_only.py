import numpy as np

SOURCE = "embedding backward that hands back the gradient of the looked-up rows, not of the table"
EXPECT = "wrong-shape"
ACCEPT = []
WHERE = "table"


def inputs(rng):
    return {"table": rng.normal(size=(8, 3)), "ids": np.array([5, 0, 3, 7])}


def forward(table, ids):
    return 2.0 * table[ids]


def backward(grad_output, table, ids):
    return {"table": 2.0 * grad_output}


FIX = "scatter into zeros: d = zeros_like(table); np.add.at(d, ids, 2 * g)"


def backward_fixed(grad_output, table, ids):
    d = np.zeros_like(table)
    np.add.at(d, ids, 2.0 * grad_output)
    return {"table": d}
