import numpy as np

TRICK = "weighted sums in float32 over 500 rows whose terms cancel"


def inputs(rng):
    f = np.float32
    x = rng.normal(size=(500, 2)).astype(f)
    return {"x": x, "w": rng.choice([-1, 1], size=500).astype(f)}


def forward(x, w):
    return w @ x


def backward(grad_output, x, w):
    g = grad_output.astype(np.float32)
    return {"x": np.outer(w, g), "w": x @ g}
