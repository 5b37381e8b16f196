import numpy as np

SOURCE = "quotient rule written without its minus, as in many tape implementations: d(a/b)/db = a/b^2"
EXPECT = "wrong-sign"
ACCEPT = ["wrong-local-derivative"]
WHERE = "scale"


def inputs(rng):
    return {"a": rng.normal(size=(4, 5)), "scale": rng.uniform(0.5, 3.0, size=(4, 1))}


def forward(a, scale):
    return a / scale


def backward(grad_output, a, scale):
    da = grad_output / scale
    dscale = np.sum(grad_output * a / scale**2, axis=1, keepdims=True)
    return {"a": da, "scale": dscale}


FIX = "dscale = -sum(g * a / scale**2)"


def backward_fixed(grad_output, a, scale):
    da = grad_output / scale
    dscale = -np.sum(grad_output * a / scale**2, axis=1, keepdims=True)
    return {"a": da, "scale": dscale}
