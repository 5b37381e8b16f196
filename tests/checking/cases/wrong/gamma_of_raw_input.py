import numpy as np

SOURCE = "layer norm: the gain's gradient multiplies by x where x-hat belongs"
EXPECT = "wrong-evaluation-point"
ACCEPT = []
WHERE = "gain"


def inputs(rng):
    return {"x": 2 + 3 * rng.normal(size=(6, 4)), "gain": rng.normal(size=4)}


def parts(x):
    m = x.mean(1, keepdims=True)
    s = np.sqrt(x.var(1, keepdims=True) + 1e-6)
    return (x - m) / s, s


def forward(x, gain):
    return parts(x)[0] * gain


def backward(grad_output, x, gain):
    xh, s = parts(x)
    d = grad_output * gain
    dx = (d - d.mean(1, keepdims=True) - xh * (d * xh).mean(1, keepdims=True)) / s
    return {"x": dx, "gain": np.einsum("nd,nd->d", grad_output, x)}


FIX = 'np.einsum("nd,nd->d", grad_output, xh)'


def backward_fixed(grad_output, x, gain):
    xh, s = parts(x)
    d = grad_output * gain
    dx = (d - d.mean(1, keepdims=True) - xh * (d * xh).mean(1, keepdims=True)) / s
    return {"x": dx, "gain": np.einsum("nd,nd->d", grad_output, xh)}
