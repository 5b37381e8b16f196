import numpy as np

SOURCE = "per-channel gain whose gradient is summed over everything, channels included"
EXPECT = "wrong-shape"
ACCEPT = ["wrong-axis"]
WHERE = "gain"


def inputs(rng):
    return {"x": rng.normal(size=(2, 3, 4)), "gain": rng.normal(size=(3, 1))}


def forward(x, gain):
    return x * gain


def backward(grad_output, x, gain):
    return {"x": grad_output * gain, "gain": np.sum(grad_output * x)}


FIX = "np.sum(grad_output * x, axis=(0, 2))[:, None]"


def backward_fixed(grad_output, x, gain):
    return {"x": grad_output * gain, "gain": np.sum(grad_output * x, axis=(0, 2))[:, None]}
