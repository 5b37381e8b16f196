import numpy as np

SOURCE = (
    "token embeddings multiplied by sqrt(d) as in the Transformer; their gradient is scattered without "
    "that factor"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = "E"


def inputs(rng):
    return {"E": rng.normal(size=(7, 5)), "tokens": np.array([[1, 4, 1], [0, 6, 4]])}


def forward(E, tokens):
    return E[tokens] * np.sqrt(E.shape[1])


def backward(grad_output, E, tokens):
    dE = np.zeros_like(E)
    for row, ids in zip(grad_output, tokens, strict=True):
        for g, t in zip(row, ids, strict=True):
            dE[t] += g
    return {"E": dE}


FIX = "dE[t] += g * np.sqrt(E.shape[1])"


def backward_fixed(grad_output, E, tokens):
    dE = np.zeros_like(E)
    np.add.at(dE, tokens, grad_output * np.sqrt(E.shape[1]))
    return {"E": dE}
