import numpy as np

SOURCE = (
    "https://offlinew.com/q/q/3383959922 (a learner's softmax_backward): the Jacobian matrix is "
    "returned instead of its product with the gradient"
)
EXPECT = "wrong-shape"
ACCEPT = ["ignores-upstream"]
WHERE = "z"


def inputs(rng):
    return {"z": rng.normal(size=4)}


def forward(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def backward(grad_output, z):
    s = forward(z).reshape(-1, 1)
    return {"z": np.diagflat(s) - np.dot(s, s.T)}


FIX = "dz = (np.diagflat(s) - s @ s.T) @ grad_output"


def backward_fixed(grad_output, z):
    s = forward(z)
    return {"z": (np.diagflat(s) - np.outer(s, s)) @ grad_output}
