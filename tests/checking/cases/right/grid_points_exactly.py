import numpy as np

TRICK = "linear interpolation at the grid points themselves: the slope jumps there, the right cell's is taken"


def inputs(rng):
    return {"table": rng.normal(size=7), "t": np.array([1.0, 3.0, 2.5, 4.0, 0.25])}


def cell(table, t):
    return np.clip(np.floor(t).astype(int), 0, len(table) - 2)


def forward(table, t):
    i = cell(table, t)
    return table[i] + (t - i) * (table[i + 1] - table[i])


def backward(grad_output, table, t):
    i = cell(table, t)
    d = np.zeros_like(table)
    np.add.at(d, i, grad_output * (1 - (t - i)))
    np.add.at(d, i + 1, grad_output * (t - i))
    return {"table": d, "t": grad_output * (table[i + 1] - table[i])}
