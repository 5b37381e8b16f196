import numpy as np

SOURCE = "the power rule with the exponent not lowered: d x**n = n * x**n"
EXPECT = "wrong-local-derivative"
ACCEPT = ["extra-term"]
WHERE = "base"
N = 3


def inputs(rng):
    return {"base": rng.uniform(0.5, 2.0, size=(2, 3)), "scale": rng.normal(size=(2, 1))}


def forward(base, scale):
    return scale * base**N


def backward(grad_output, base, scale):
    return {
        "base": grad_output * scale * N * base**N,
        "scale": np.sum(grad_output * base**N, axis=1, keepdims=True),
    }


FIX = "N * base ** (N - 1)"


def backward_fixed(grad_output, base, scale):
    return {
        "base": grad_output * scale * N * base ** (N - 1),
        "scale": np.sum(grad_output * base**N, axis=1, keepdims=True),
    }
