import numpy as np

SOURCE = (
    "embedding with a padding row that the forward zeroes out; the backward adds gradients to it all the same"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["extra-term"]
WHERE = "table"
PAD = 0


def inputs(rng):
    return {"table": rng.normal(size=(5, 3)), "ids": np.array([3, 0, 1, 3, 0, 4])}


def forward(table, ids):
    return table[ids] * (ids != PAD)[:, None]


def backward(grad_output, table, ids):
    d = np.zeros_like(table)
    np.add.at(d, ids, grad_output)
    return {"table": d}


FIX = "np.add.at(d, ids, grad_output * (ids != PAD)[:, None])"


def backward_fixed(grad_output, table, ids):
    d = np.zeros_like(table)
    np.add.at(d, ids, grad_output * (ids != PAD)[:, None])
    return {"table": d}
