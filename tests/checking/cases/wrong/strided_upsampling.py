import numpy as np

SOURCE = (
    "https://github.com/pytorch/pytorch/issues/63314: transposed convolution with stride 2, the "
    "backward reads the gradient next door instead of every second one"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-axis", "wrong-local-derivative"]
WHERE = "x"
STRIDE = 2


def inputs(rng):
    return {"x": rng.normal(size=(2, 4)), "w": rng.normal(size=())}


def forward(x, w):
    out = np.zeros((x.shape[0], STRIDE * (x.shape[1] - 1) + 1))
    out[:, ::STRIDE] = w * x
    return out


def backward(grad_output, x, w):
    dx = np.zeros_like(x)
    for i in range(x.shape[1]):
        dx[:, i] = w * grad_output[:, i]
    return {"x": dx, "w": np.sum(grad_output[:, ::STRIDE] * x)}


FIX = "dx[:, i] = w * grad_output[:, STRIDE * i]"


def backward_fixed(grad_output, x, w):
    dx = np.zeros_like(x)
    for i in range(x.shape[1]):
        dx[:, i] = w * grad_output[:, STRIDE * i]
    return {"x": dx, "w": np.sum(grad_output[:, ::STRIDE] * x)}
