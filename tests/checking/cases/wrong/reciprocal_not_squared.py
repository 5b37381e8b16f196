import numpy as np  # noqa: F401

SOURCE = "reciprocal: d(1/x) = -1/x, the square is missing (seen in hand-written divisions)"
EXPECT = "wrong-local-derivative"
ACCEPT = ["missing-local-derivative", "wrong-evaluation-point"]
WHERE = "d"


def inputs(rng):
    return {"n": rng.normal(size=(3, 4)), "d": rng.uniform(0.5, 2, size=(3, 4))}


def forward(n, d):
    return n / d


def backward(grad_output, n, d):
    return {"n": grad_output / d, "d": -grad_output * n / d}


FIX = "-grad_output * n / d**2"


def backward_fixed(grad_output, n, d):
    return {"n": grad_output / d, "d": -grad_output * n / d**2}
