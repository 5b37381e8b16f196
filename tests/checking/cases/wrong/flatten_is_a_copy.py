import numpy as np

SOURCE = "NumPy trap: d.flatten() is a copy, so the scatter into it never reaches d"
EXPECT = "zero-gradient"
ACCEPT = []
WHERE = "grid"


def inputs(rng):
    return {"grid": rng.normal(size=(3, 4)), "spots": np.array([0, 5, 6, 11])}


def forward(grid, spots):
    return np.exp(grid.ravel()[spots])


def backward(grad_output, grid, spots):
    d = np.zeros_like(grid)
    d.flatten()[spots] = grad_output * np.exp(grid.ravel()[spots])
    return {"grid": d}


FIX = "d.reshape(-1)[spots] = ..., a view"


def backward_fixed(grad_output, grid, spots):
    d = np.zeros_like(grid)
    d.reshape(-1)[spots] = grad_output * np.exp(grid.ravel()[spots])
    return {"grid": d}
