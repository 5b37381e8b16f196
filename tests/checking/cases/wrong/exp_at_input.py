import numpy as np

SOURCE = (
    "https://github.com/karpathy/nn-zero-to-hero/issues/52: exp's backward 'corrected' to multiply by "
    "the input's data instead of the output's"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=6)}


def forward(x):
    return np.exp(x)


def backward(grad_output, x):
    return {"x": grad_output * x}


FIX = "dx = grad_output * np.exp(x)"


def backward_fixed(grad_output, x):
    return {"x": grad_output * np.exp(x)}
