import numpy as np

SOURCE = (
    "https://github.com/scientific-computing/FKB/issues/15 (also "
    "https://github.com/deeplearning4j/deeplearning4j/issues/8178): leaky ReLU with plain ReLU's "
    "derivative"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["zero-gradient", "missing-term"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 5))}


def forward(x):
    return np.maximum(0.3 * x, x)


def backward(grad_output, x):
    return {"x": np.where(0.3 * x > 0, grad_output, 0.0)}


FIX = "np.where(x > 0, grad_output, 0.3 * grad_output)"


def backward_fixed(grad_output, x):
    return {"x": np.where(x > 0, grad_output, 0.3 * grad_output)}
