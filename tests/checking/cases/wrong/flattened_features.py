import numpy as np  # noqa: F401

SOURCE = "flatten before the dense layer: the gradient of the feature maps is handed back flat"
EXPECT = "wrong-shape"
ACCEPT = []
WHERE = "maps"


def inputs(rng):
    return {"maps": rng.normal(size=(2, 3, 2, 2)), "W": rng.normal(size=(12, 4))}


def forward(maps, W):
    return maps.reshape(len(maps), -1) @ W


def backward(grad_output, maps, W):
    flat = maps.reshape(len(maps), -1)
    return {"maps": grad_output @ W.T, "W": flat.T @ grad_output}


FIX = "dmaps = (grad_output @ W.T).reshape(maps.shape)"


def backward_fixed(grad_output, maps, W):
    flat = maps.reshape(len(maps), -1)
    return {"maps": (grad_output @ W.T).reshape(maps.shape), "W": flat.T @ grad_output}
