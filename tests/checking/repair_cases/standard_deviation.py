"""The standard deviation of columns: n - 1 forward, n backward."""


def inputs(rng):
    return {"x": rng.normal(size=(5, 3))}


def forward(x):
    return x.std(axis=0, ddof=1)


def backward(grad_output, x):
    centred = x - x.mean(axis=0)
    return {"x": grad_output * centred / (len(x) * x.std(axis=0, ddof=1))}


def backward_fixed(grad_output, x):
    centred = x - x.mean(axis=0)
    return {"x": grad_output * centred / ((len(x) - 1) * x.std(axis=0, ddof=1))}
