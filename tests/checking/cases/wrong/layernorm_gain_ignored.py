import numpy as np

SOURCE = (
    "https://github.com/karpathy/llm.c/pull/763: a reader's own RMSNorm forgot to multiply by the "
    "weight in the backward pass"
)
EXPECT = "missing-local-derivative"
ACCEPT = []
WHERE = "x"
EPS = 1e-5


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 4)), "weight": rng.uniform(0.3, 2, size=4)}


def rrms(x):
    return 1 / np.sqrt((x**2).mean(-1, keepdims=True) + EPS)


def forward(x, weight):
    return weight * x * rrms(x)


def backward(grad_output, x, weight):
    r = rrms(x)
    n = x * r
    dn = grad_output
    dx = r * (dn - n * (dn * n).mean(-1, keepdims=True))
    return {"x": dx, "weight": (grad_output * n).sum((0, 1))}


FIX = "dn = grad_output * weight"


def backward_fixed(grad_output, x, weight):
    r = rrms(x)
    n = x * r
    dn = grad_output * weight
    dx = r * (dn - n * (dn * n).mean(-1, keepdims=True))
    return {"x": dx, "weight": (grad_output * n).sum((0, 1))}
