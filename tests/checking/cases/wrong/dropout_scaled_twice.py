import numpy as np  # noqa: F401

SOURCE = (
    "https://github.com/CSTR-Edinburgh/mlpractical/pull/32 (kin: scaled doubly): the mask already holds"
    " 1/(1-p), the backward divides again"
)
EXPECT = "extra-term"
ACCEPT = ["constant-factor"]
WHERE = "x"
KEEP = 0.75


def inputs(rng):
    return {"x": rng.normal(size=(4, 5)), "drawn": rng.uniform(size=(4, 5))}


def mask(drawn):
    return (drawn < KEEP) / KEEP


def forward(x, drawn):
    return x * mask(drawn)


def backward(grad_output, x, drawn):
    return {"x": grad_output * mask(drawn) / KEEP}


FIX = "dx = grad_output * mask(drawn)"


def backward_fixed(grad_output, x, drawn):
    return {"x": grad_output * mask(drawn)}
