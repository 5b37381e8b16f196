import numpy as np

SOURCE = "REINFORCE written as a loss: the score onehot - p (an ascent direction) is used for the descent"
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "theta"


def inputs(rng):
    return {
        "theta": rng.normal(size=(4, 3)),
        "states": rng.normal(size=(6, 4)),
        "actions": rng.integers(0, 3, size=6),
        "advantage": rng.normal(size=6),
    }


def policy(states, theta):
    z = states @ theta
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(theta, states, actions, advantage):
    p = policy(states, theta)
    return -np.mean(advantage * np.log(p[np.arange(len(p)), actions]))


def backward(grad_output, theta, states, actions, advantage):
    p = policy(states, theta)
    score = -p
    score[np.arange(len(p)), actions] += 1
    dz = grad_output * advantage[:, None] * score / len(p)
    return {"theta": states.T @ dz}


FIX = "dz = -grad_output * advantage[:, None] * score / len(p)"


def backward_fixed(grad_output, theta, states, actions, advantage):
    p = policy(states, theta)
    score = -p
    score[np.arange(len(p)), actions] += 1
    dz = -grad_output * advantage[:, None] * score / len(p)
    return {"theta": states.T @ dz}
