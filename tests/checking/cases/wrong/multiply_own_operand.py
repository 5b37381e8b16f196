import numpy as np  # noqa: F401

SOURCE = "tape engines: the product's backward gives each factor the gradient of the other (a gets g*a)"
EXPECT = "swapped-gradients"
ACCEPT = ["wrong-evaluation-point", "wrong-local-derivative"]
WHERE = ["a", "b"]


def inputs(rng):
    return {"a": rng.normal(size=(3, 2)), "b": rng.normal(size=(3, 2))}


def forward(a, b):
    return a * b


def backward(grad_output, a, b):
    return {"a": grad_output * a, "b": grad_output * b}


FIX = "da = grad_output * b, db = grad_output * a"


def backward_fixed(grad_output, a, b):
    return {"a": grad_output * b, "b": grad_output * a}
