import numpy as np

SOURCE = (
    "https://github.com/PaddlePaddle/Paddle/pull/74716: g*cos - rotate_half(g)*sin, where the sines "
    "must be multiplied in before the halves are exchanged"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["transposed", "wrong-local-derivative"]
WHERE = "q"


def inputs(rng):
    angle = rng.uniform(0, 3, size=(3, 4))
    return {"q": rng.normal(size=(3, 4)), "cos": np.cos(angle), "sin": np.sin(angle)}


def rotate_half(x):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([-b, a], axis=-1)


def forward(q, cos, sin):
    return q * cos + rotate_half(q) * sin


def backward(grad_output, q, cos, sin):
    dq = grad_output * cos - rotate_half(grad_output) * sin
    return {"q": dq, "cos": grad_output * q, "sin": grad_output * rotate_half(q)}


FIX = "dq = grad_output * cos - rotate_half(grad_output * sin)"


def backward_fixed(grad_output, q, cos, sin):
    dq = grad_output * cos - rotate_half(grad_output * sin)
    return {"q": dq, "cos": grad_output * q, "sin": grad_output * rotate_half(q)}
