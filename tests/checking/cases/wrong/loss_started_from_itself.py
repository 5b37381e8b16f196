import numpy as np

SOURCE = (
    "a loss node that returns (p - y) / N and never looks at the gradient it is handed, since it is "
    "'the last one'"
)
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = "logits"


def inputs(rng):
    return {"logits": rng.normal(size=(5, 3)), "onehot": np.eye(3, dtype=int)[[0, 2, 1, 1, 0]]}


def forward(logits, onehot):
    m = logits.max(axis=1, keepdims=True)
    lse = m[:, 0] + np.log(np.exp(logits - m).sum(axis=1))
    return np.mean(lse - (logits * onehot).sum(axis=1))


def backward(grad_output, logits, onehot):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return {"logits": (p - onehot) / logits.shape[0]}


FIX = "dlogits = grad_output * (p - onehot) / N"


def backward_fixed(grad_output, logits, onehot):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return {"logits": grad_output * (p - onehot) / logits.shape[0]}
