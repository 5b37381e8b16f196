import numpy as np

SOURCE = (
    "a common question of learners: the loss is a mean over the batch, its backward is p - onehot without / N"
)
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor"]
WHERE = "logits"


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def inputs(rng):
    return {"logits": rng.normal(size=(7, 4)), "target": rng.integers(0, 4, size=7)}


def forward(logits, target):
    p = softmax(logits)
    return -np.log(p[np.arange(len(target)), target]).mean()


def backward(grad_output, logits, target):
    d = softmax(logits)
    d[np.arange(len(target)), target] -= 1
    return {"logits": grad_output * d}


FIX = "d /= len(target)"


def backward_fixed(grad_output, logits, target):
    d = softmax(logits)
    d[np.arange(len(target)), target] -= 1
    return {"logits": grad_output * d / len(target)}
