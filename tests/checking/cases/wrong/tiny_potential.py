import numpy as np  # noqa: F401

SOURCE = (
    "physics in SI units: a potential of 1e-19 J whose force has the wrong sign, far below any absolute"
    " tolerance"
)
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "r"
EPSILON, SIGMA = 1.65e-21, 3.4e-10


def inputs(rng):
    return {"r": SIGMA * rng.uniform(1.0, 2.0, size=5)}


def forward(r):
    s6 = (SIGMA / r) ** 6
    return 4 * EPSILON * (s6**2 - s6)


def backward(grad_output, r):
    s6 = (SIGMA / r) ** 6
    return {"r": grad_output * 24 * EPSILON * (2 * s6**2 - s6) / r}


FIX = "-24 * EPSILON * (2 * s6**2 - s6) / r"


def backward_fixed(grad_output, r):
    s6 = (SIGMA / r) ** 6
    return {"r": -grad_output * 24 * EPSILON * (2 * s6**2 - s6) / r}
