import numpy as np

SOURCE = "hand-derived highway/GRU gates: y = t*h + (1-t)*x and the gate's gradient written as g*(h + x)"
EXPECT = "wrong-sign"
ACCEPT = ["wrong-local-derivative"]
WHERE = "t_in"


def sig(z):
    return 1 / (1 + np.exp(-z))


def inputs(rng):
    return {k: rng.normal(size=(4, 3)) for k in ("t_in", "h", "x")}


def forward(t_in, h, x):
    t = sig(t_in)
    return t * h + (1 - t) * x


def backward(grad_output, t_in, h, x):
    t = sig(t_in)
    dt = grad_output * (h + x)
    return {"t_in": dt * t * (1 - t), "h": grad_output * t, "x": grad_output * (1 - t)}


FIX = "dt = grad_output * (h - x)"


def backward_fixed(grad_output, t_in, h, x):
    t = sig(t_in)
    dt = grad_output * (h - x)
    return {"t_in": dt * t * (1 - t), "h": grad_output * t, "x": grad_output * (1 - t)}
