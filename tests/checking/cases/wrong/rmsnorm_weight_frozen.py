import numpy as np

SOURCE = (
    "https://github.com/unslothai/unsloth/issues/4533: the fused RMSNorm's backward never computes the "
    "weight's gradient"
)
EXPECT = "zero-gradient"
ACCEPT = []
WHERE = "w"


def inputs(rng):
    return {"x": rng.normal(size=(3, 5)), "w": rng.uniform(0.5, 1.5, size=5)}


def forward(x, w):
    return w * x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def backward(grad_output, x, w):
    inv = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    g = grad_output * w
    dx = inv * (g - x * inv**2 * (g * x).mean(axis=-1, keepdims=True))
    return {"x": dx, "w": np.zeros_like(w)}


FIX = "dw = (grad_output * x * inv).sum(axis=0)"


def backward_fixed(grad_output, x, w):
    inv = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    g = grad_output * w
    dx = inv * (g - x * inv**2 * (g * x).mean(axis=-1, keepdims=True))
    return {"x": dx, "w": (grad_output * x * inv).sum(axis=0)}
