import numpy as np

SOURCE = (
    "TD error written for two networks: the bootstrap target is treated as a constant though it is an "
    "argument of the loss"
)
EXPECT = "zero-gradient"
ACCEPT = ["missing-term"]
WHERE = "q_next"
GAMMA = 0.9


def inputs(rng):
    return {"q": rng.normal(size=6), "q_next": rng.normal(size=(6, 3)), "reward": rng.normal(size=6)}


def forward(q, q_next, reward):
    return 0.5 * np.mean((reward + GAMMA * q_next.max(axis=1) - q) ** 2)


def backward(grad_output, q, q_next, reward):
    delta = reward + GAMMA * q_next.max(axis=1) - q
    dq = -grad_output * delta / len(q)
    return {"q": dq, "q_next": np.zeros_like(q_next), "reward": -dq}


FIX = "dq_next = one-hot of the maximum * GAMMA * grad_output * delta / n"


def backward_fixed(grad_output, q, q_next, reward):
    delta = reward + GAMMA * q_next.max(axis=1) - q
    dq = -grad_output * delta / len(q)
    best = q_next == q_next.max(axis=1, keepdims=True)
    return {"q": dq, "q_next": -GAMMA * dq[:, None] * best, "reward": -dq}
