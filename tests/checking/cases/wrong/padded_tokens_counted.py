import numpy as np

SOURCE = (
    "https://github.com/huggingface/transformers/pull/34191 (kin: loss normalised by the wrong count): "
    "mean over the unpadded tokens, gradient divided by all of them"
)
EXPECT = "constant-factor"
ACCEPT = ["batch-mean-vs-sum"]
WHERE = "logits"
PAD = -100


def inputs(rng):
    return {"logits": rng.normal(size=(7, 5)), "labels": np.array([1, 4, PAD, 0, PAD, 2, 3])}


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def forward(logits, labels):
    rows = np.flatnonzero(labels != PAD)
    return -np.log(softmax(logits)[rows, labels[rows]]).mean()


def backward(grad_output, logits, labels):
    rows = np.flatnonzero(labels != PAD)
    d = np.zeros_like(logits)
    d[rows] = softmax(logits)[rows]
    d[rows, labels[rows]] -= 1.0
    return {"logits": grad_output * d / len(labels)}


FIX = "divide by len(rows)"


def backward_fixed(grad_output, logits, labels):
    rows = np.flatnonzero(labels != PAD)
    d = np.zeros_like(logits)
    d[rows] = softmax(logits)[rows]
    d[rows, labels[rows]] -= 1.0
    return {"logits": grad_output * d / len(rows)}
