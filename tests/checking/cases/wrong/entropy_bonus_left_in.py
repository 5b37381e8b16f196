import numpy as np

SOURCE = "actor-critic code: the entropy bonus was taken out of the loss, its gradient stayed"
EXPECT = "extra-term"
ACCEPT = []
WHERE = "logits"
BETA = 0.3


def inputs(rng):
    return {
        "logits": rng.normal(size=(5, 3)),
        "action": rng.integers(0, 3, size=5),
        "advantage": rng.normal(size=5),
    }


def log_policy(logits):
    s = logits - logits.max(axis=1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def forward(logits, action, advantage):
    lp = log_policy(logits)
    return -(advantage * lp[np.arange(5), action]).sum()


def backward(grad_output, logits, action, advantage):
    lp = log_policy(logits)
    p = np.exp(lp)
    d = advantage[:, None] * (p - np.eye(3)[action])
    entropy = -(p * lp).sum(axis=1, keepdims=True)
    d += BETA * p * (lp + entropy)
    return {"logits": grad_output * d}


FIX = "drop the entropy's line: the loss has no entropy"


def backward_fixed(grad_output, logits, action, advantage):
    p = np.exp(log_policy(logits))
    return {"logits": grad_output * advantage[:, None] * (p - np.eye(3)[action])}
