import numpy as np

SOURCE = "weight normalisation w = g * v / |v|: dv = dw * g / |v|, the projection off v is missing"
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "v"


def inputs(rng):
    return {"x": rng.normal(size=(6, 4)), "v": rng.normal(size=4), "g": rng.uniform(0.5, 2.0, size=())}


def forward(x, v, g):
    return x @ (g * v / np.sqrt(v @ v))


def backward(grad_output, x, v, g):
    n = np.sqrt(v @ v)
    dw = x.T @ grad_output
    return {"x": np.outer(grad_output, g * v / n), "v": g / n * dw, "g": dw @ v / n}


FIX = "dv = g / n * (dw - v * (dw @ v) / n**2)"


def backward_fixed(grad_output, x, v, g):
    n = np.sqrt(v @ v)
    dw = x.T @ grad_output
    dv = g / n * (dw - v * (dw @ v) / n**2)
    return {"x": np.outer(grad_output, g * v / n), "v": dv, "g": dw @ v / n}
