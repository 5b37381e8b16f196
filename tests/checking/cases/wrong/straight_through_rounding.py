import numpy as np

SOURCE = (
    "straight-through estimator: round() given the derivative 1, useful in training and not the derivative"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["extra-term", "missing-local-derivative"]
WHERE = "x"


def inputs(rng):
    return {"x": 4 * rng.normal(size=(3, 3)), "scale": rng.uniform(0.5, 2, size=3)}


def forward(x, scale):
    return np.round(x) * scale


def backward(grad_output, x, scale):
    return {"x": grad_output * scale, "scale": (grad_output * np.round(x)).sum(axis=0)}


FIX = "dx = 0 between the steps"


def backward_fixed(grad_output, x, scale):
    return {"x": np.zeros_like(x), "scale": (grad_output * np.round(x)).sum(axis=0)}
