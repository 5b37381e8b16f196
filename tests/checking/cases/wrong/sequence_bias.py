import numpy as np

SOURCE = (
    "https://github.com/ooples/AiDotNet.Tensors/issues/234: the bias gradient of a fused linear layer "
    "reduces axis 0 only, wrong for (batch, sequence, features)"
)
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape", "wrong-axis"]
WHERE = "bias"


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 4)), "W": rng.normal(size=(4, 5)), "bias": rng.normal(size=5)}


def forward(x, W, bias):
    return x @ W + bias


def backward(grad_output, x, W, bias):
    dW = np.tensordot(x, grad_output, axes=((0, 1), (0, 1)))
    return {"x": grad_output @ W.T, "W": dW, "bias": grad_output.sum(axis=0)}


FIX = "dbias = grad_output.sum(axis=(0, 1))"


def backward_fixed(grad_output, x, W, bias):
    dW = np.tensordot(x, grad_output, axes=((0, 1), (0, 1)))
    return {"x": grad_output @ W.T, "W": dW, "bias": grad_output.sum(axis=(0, 1))}
