import numpy as np

SOURCE = (
    "https://github.com/huggingface/candle/pull/3612 says what is right: the backward rotates back, sin"
    " negated; here the same rotation is applied again"
)
EXPECT = "transposed"
ACCEPT = ["wrong-sign"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(4, 6)), "position": np.arange(1, 5)}


def rotate(x, position):
    half = x.shape[1] // 2
    angle = position[:, None] * 10.0 ** (-np.arange(half) / half)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)


def forward(x, position):
    return rotate(x, position)


def backward(grad_output, x, position):
    return {"x": rotate(grad_output, position)}


FIX = "dx = rotate(grad_output, -position)"


def backward_fixed(grad_output, x, position):
    return {"x": rotate(grad_output, -position)}
