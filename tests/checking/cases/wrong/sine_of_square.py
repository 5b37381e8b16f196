import numpy as np

SOURCE = "chain rule stopped half-way: d sin(x^2) = cos(x^2), the 2x is missing"
EXPECT = "missing-local-derivative"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(2, 4))}


def forward(x):
    return np.sin(x**2)


def backward(grad_output, x):
    return {"x": grad_output * np.cos(x**2)}


FIX = "dx = grad_output * np.cos(x**2) * 2 * x"


def backward_fixed(grad_output, x):
    return {"x": grad_output * np.cos(x**2) * 2 * x}
