"""x W y for rows of x and y: the gradient of W has its factors exchanged."""


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 3)), "y": rng.normal(size=(5, 3))}


def forward(x, W, y):
    return ((x @ W) * y).sum(axis=1)


def backward(grad_output, x, W, y):
    g = grad_output[:, None]
    return {"x": (g * y) @ W.T, "W": (g * y).T @ x, "y": g * (x @ W)}


def backward_fixed(grad_output, x, W, y):
    g = grad_output[:, None]
    return {"x": (g * y) @ W.T, "W": x.T @ (g * y), "y": g * (x @ W)}
