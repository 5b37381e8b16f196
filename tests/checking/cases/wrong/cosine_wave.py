import numpy as np

SOURCE = "the cosine's derivative taken as sin instead of -sin"
EXPECT = "wrong-sign"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["t", "omega", "phase"]


def inputs(rng):
    return {"t": rng.uniform(0, 3, size=5), "omega": rng.uniform(1, 2, size=1), "phase": rng.normal(size=1)}


def forward(t, omega, phase):
    return np.cos(omega * t + phase)


def backward(grad_output, t, omega, phase):
    inner = grad_output * np.sin(omega * t + phase)
    return {"t": omega * inner, "omega": np.array([inner @ t]), "phase": inner.sum(keepdims=True)}


FIX = "inner = -grad_output * np.sin(omega * t + phase)"


def backward_fixed(grad_output, t, omega, phase):
    inner = -grad_output * np.sin(omega * t + phase)
    return {"t": omega * inner, "omega": np.array([inner @ t]), "phase": inner.sum(keepdims=True)}
