import numpy as np

TRICK = "forward with a cache dictionary that backward builds again; buffers of its own are changed in place"


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), "W": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}


def run(x, W, b):
    cache = {"x": x}
    cache["z"] = x @ W + b
    cache["a"] = np.maximum(cache["z"], 0)
    return cache["a"] ** 2, cache


def forward(x, W, b):
    return run(x, W, b)[0]


def backward(grad_output, x, W, b):
    _, cache = run(x, W, b)
    d = np.array(grad_output)
    d *= 2
    d *= cache["a"]
    d[cache["z"] <= 0] = 0
    db = np.zeros_like(b)
    for row in d:
        db += row
    return {"b": db, "W": cache["x"].T @ d, "x": d @ W.T}
