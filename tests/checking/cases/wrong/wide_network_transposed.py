import numpy as np

SOURCE = "a larger network (20 examples, 16 units): the transpose is missing in the middle layer only"
EXPECT = "transposed"
ACCEPT = []
WHERE = ["x", "A"]


def inputs(rng):
    return {
        "x": rng.normal(size=(20, 6)),
        "A": rng.normal(size=(6, 16)) / 3,
        "B": rng.normal(size=(16, 16)) / 4,
        "C": rng.normal(size=(16, 3)) / 4,
    }


def layers(x, A, B, C):
    h1 = np.tanh(x @ A)
    h2 = np.tanh(h1 @ B)
    return h1, h2, h2 @ C


def forward(x, A, B, C):
    return layers(x, A, B, C)[2]


def backward(grad_output, x, A, B, C):
    h1, h2, _ = layers(x, A, B, C)
    d2 = (grad_output @ C.T) * (1 - h2**2)
    d1 = (d2 @ B) * (1 - h1**2)
    return {"x": d1 @ A.T, "A": x.T @ d1, "B": h1.T @ d2, "C": h2.T @ grad_output}


FIX = "d1 = (d2 @ B.T) * (1 - h1**2)"


def backward_fixed(grad_output, x, A, B, C):
    h1, h2, _ = layers(x, A, B, C)
    d2 = (grad_output @ C.T) * (1 - h2**2)
    d1 = (d2 @ B.T) * (1 - h1**2)
    return {"x": d1 @ A.T, "A": x.T @ d1, "B": h1.T @ d2, "C": h2.T @ grad_output}
