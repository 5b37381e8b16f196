import numpy as np  # noqa: F401

SOURCE = (
    "inverted dropout with an integer mask: grad * (mask // keep) where mask / keep was meant; 1 // 0.8"
    " is 1, 0.5 a lucky choice"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = "x"
KEEP = 0.8


def inputs(rng):
    return {"x": rng.normal(size=(4, 6)), "mask": (rng.uniform(size=(4, 6)) < KEEP).astype(int)}


def forward(x, mask):
    return x * (mask / KEEP)


def backward(grad_output, x, mask):
    return {"x": grad_output * (mask // KEEP)}


FIX = "grad_output * (mask / KEEP)"


def backward_fixed(grad_output, x, mask):
    return {"x": grad_output * (mask / KEEP)}
