import numpy as np

SOURCE = (
    "https://github.com/ggml-org/ggml/pull/1521: softmax backward writes dy over the saved output y and"
    " then multiplies by y"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = ["wrong-evaluation-point", "wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4))}


def forward(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def backward(grad_output, x):
    y = forward(x)
    dot = (y * grad_output).sum(axis=1, keepdims=True)
    dx = y
    dx[...] = grad_output
    dx -= dot
    dx *= y
    return {"x": dx}


FIX = "dx = np.empty_like(y): a buffer of its own"


def backward_fixed(grad_output, x):
    y = forward(x)
    dot = (y * grad_output).sum(axis=1, keepdims=True)
    return {"x": y * (grad_output - dot)}
