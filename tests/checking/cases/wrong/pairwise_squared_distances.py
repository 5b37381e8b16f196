import numpy as np

SOURCE = (
    "k-means and t-SNE style code: the gradient of the squared distance forgets the 2 for both point sets"
)
EXPECT = "constant-factor"
ACCEPT = []
WHERE = ["x", "c"]


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "c": rng.normal(size=(4, 3))}


def forward(x, c):
    out = np.zeros((len(x), len(c)))
    for i in range(len(x)):
        for k in range(len(c)):
            out[i, k] = np.sum((x[i] - c[k]) ** 2)
    return out


def backward(grad_output, x, c):
    dx, dc = np.zeros_like(x), np.zeros_like(c)
    for i in range(len(x)):
        for k in range(len(c)):
            d = grad_output[i, k] * (x[i] - c[k])
            dx[i] += d
            dc[k] -= d
    return {"x": dx, "c": dc}


FIX = "d = 2 * grad_output[i, k] * (x[i] - c[k])"


def backward_fixed(grad_output, x, c):
    dx, dc = np.zeros_like(x), np.zeros_like(c)
    for i in range(len(x)):
        for k in range(len(c)):
            d = 2 * grad_output[i, k] * (x[i] - c[k])
            dx[i] += d
            dc[k] -= d
    return {"x": dx, "c": dc}
