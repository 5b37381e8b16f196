import numpy as np

SOURCE = (
    "https://github.com/karpathy/micrograd (the lecture's bug): self.grad = ... instead of +=, so a "
    "node used twice keeps its last gradient"
)
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "a"


def inputs(rng):
    return {"a": rng.normal(size=()), "b": rng.normal(size=())}


def forward(a, b):
    e = a * b
    d = a + b
    return np.asarray(e * d)


def backward(grad_output, a, b):
    grad = dict.fromkeys(["a", "b", "d", "e"], 0.0)
    e, d = a * b, a + b
    grad["e"] += d * grad_output
    grad["d"] += e * grad_output
    grad["a"] = grad["d"]
    grad["b"] += grad["d"]
    grad["a"] = b * grad["e"]
    grad["b"] += a * grad["e"]
    return {"a": np.asarray(grad["a"]), "b": np.asarray(grad["b"])}


FIX = 'grad["a"] += ... both times'


def backward_fixed(grad_output, a, b):
    e, d = a * b, a + b
    return {"a": np.asarray(grad_output * (e + d * b)), "b": np.asarray(grad_output * (e + d * a))}
