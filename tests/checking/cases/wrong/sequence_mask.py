import numpy as np  # noqa: F401

SOURCE = (
    "https://github.com/tenstorrent/tt-metal/issues/40008: [B,1,T,H] * [B,1,T,1], the gradient of the "
    "mask keeps H"
)
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape"]
WHERE = "mask"


def inputs(rng):
    return {"h": rng.normal(size=(2, 1, 4, 3)), "mask": rng.uniform(size=(2, 1, 4, 1))}


def forward(h, mask):
    return h * mask


def backward(grad_output, h, mask):
    return {"h": grad_output * mask, "mask": grad_output * h}


FIX = "dmask = (grad_output * h).sum(axis=-1, keepdims=True)"


def backward_fixed(grad_output, h, mask):
    return {"h": grad_output * mask, "mask": (grad_output * h).sum(axis=-1, keepdims=True)}
