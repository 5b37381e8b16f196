import numpy as np

SOURCE = (
    "softmax with cross-entropy: p - y is already the gradient of the logits, yet it is sent through "
    "the softmax's Jacobian again"
)
EXPECT = "extra-term"
ACCEPT = []
WHERE = "logits"


def inputs(rng):
    return {"logits": rng.normal(size=(4, 3)), "y": np.eye(3, dtype=int)[[2, 0, 1, 0]]}


def softmax(z):
    e = np.exp(z - np.max(z, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def softmax_backward(g, p):
    return p * (g - np.sum(g * p, axis=1, keepdims=True))


def forward(logits, y):
    return -np.sum(y * np.log(softmax(logits)), axis=1)


def backward(grad_output, logits, y):
    p = softmax(logits)
    d = grad_output[:, None] * (p - y)
    return {"logits": softmax_backward(d, p)}


FIX = "dlogits = grad_output[:, None] * (p - y)"


def backward_fixed(grad_output, logits, y):
    return {"logits": grad_output[:, None] * (softmax(logits) - y)}
