import numpy as np

SOURCE = "cross-entropy with label smoothing, whose backward is still p - onehot"
EXPECT = "missing-term"
ACCEPT = ["wrong-evaluation-point", "wrong-local-derivative"]
WHERE = "z"
EPS = 0.1


def inputs(rng):
    return {"z": rng.normal(size=(5, 4)), "label": rng.integers(0, 4, size=5)}


def logp(z):
    s = z - z.max(axis=1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def forward(z, label):
    q = (1 - EPS) * np.eye(z.shape[1])[label] + EPS / z.shape[1]
    return -(q * logp(z)).sum()


def backward(grad_output, z, label):
    return {"z": grad_output * (np.exp(logp(z)) - np.eye(z.shape[1])[label])}


FIX = "p - ((1 - EPS) * onehot + EPS / C)"


def backward_fixed(grad_output, z, label):
    q = (1 - EPS) * np.eye(z.shape[1])[label] + EPS / z.shape[1]
    return {"z": grad_output * (np.exp(logp(z)) - q)}
