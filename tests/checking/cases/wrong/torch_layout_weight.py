import numpy as np  # noqa: F401

SOURCE = (
    "weights stored (out, in) as PyTorch does, backward copied from code that stores (in, out); square "
    "layers keep quiet"
)
EXPECT = "transposed"
ACCEPT = []
WHERE = ["x", "weight"]


def inputs(rng):
    return {"x": rng.normal(size=(6, 3)), "weight": rng.normal(size=(3, 3)), "bias": rng.normal(size=3)}


def forward(x, weight, bias):
    return x @ weight.T + bias


def backward(grad_output, x, weight, bias):
    return {"x": grad_output @ weight.T, "weight": x.T @ grad_output, "bias": grad_output.sum(0)}


FIX = "dx = grad_output @ weight, dweight = grad_output.T @ x"


def backward_fixed(grad_output, x, weight, bias):
    return {"x": grad_output @ weight, "weight": grad_output.T @ x, "bias": grad_output.sum(0)}
