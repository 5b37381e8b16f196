import numpy as np

SOURCE = "log2 differentiated like log: the 1 / ln 2 is forgotten (information-theoretic losses in bits)"
EXPECT = "missing-local-derivative"
ACCEPT = ["constant-factor", "wrong-local-derivative"]
WHERE = "p"


def inputs(rng):
    return {"p": rng.dirichlet(np.ones(5), size=3)}


def forward(p):
    return -np.sum(p * np.log2(p), axis=1)


def backward(grad_output, p):
    return {"p": -grad_output[:, None] * (np.log2(p) + 1)}


FIX = "-(np.log2(p) + 1 / np.log(2))"


def backward_fixed(grad_output, p):
    return {"p": -grad_output[:, None] * (np.log2(p) + 1 / np.log(2))}
