import numpy as np

SOURCE = (
    "self-attention: x feeds queries, keys and values, and each path's gradient is assigned to dx in turn"
)
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(4, 3)), **{k: rng.normal(size=(3, 2)) for k in ("Wq", "Wk", "Wv")}}


def attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    s = q @ k.T / np.sqrt(2)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return q, k, v, e / e.sum(axis=1, keepdims=True)


def forward(x, Wq, Wk, Wv):
    _, _, v, p = attention(x, Wq, Wk, Wv)
    return p @ v


def backward(grad_output, x, Wq, Wk, Wv):
    q, k, v, p = attention(x, Wq, Wk, Wv)
    dv = p.T @ grad_output
    dp = grad_output @ v.T
    ds = p * (dp - (dp * p).sum(axis=1, keepdims=True)) / np.sqrt(2)
    grads = {}
    for name, W, d in (("Wv", Wv, dv), ("Wk", Wk, ds.T @ q), ("Wq", Wq, ds @ k)):
        grads[name] = x.T @ d
        grads["x"] = d @ W.T
    return grads


FIX = 'grads["x"] = grads.get("x", 0) + d @ W.T'


def backward_fixed(grad_output, x, Wq, Wk, Wv):
    q, k, v, p = attention(x, Wq, Wk, Wv)
    dv = p.T @ grad_output
    dp = grad_output @ v.T
    ds = p * (dp - (dp * p).sum(axis=1, keepdims=True)) / np.sqrt(2)
    grads = {}
    for name, W, d in (("Wv", Wv, dv), ("Wk", Wk, ds.T @ q), ("Wq", Wq, ds @ k)):
        grads[name] = x.T @ d
        grads["x"] = grads.get("x", 0) + d @ W.T
    return grads
