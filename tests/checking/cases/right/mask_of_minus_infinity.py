import numpy as np

TRICK = "a causal mask of -inf as a float argument that is left out of the gradients"


def inputs(rng):
    mask = np.where(np.tri(4) > 0, 0.0, -np.inf)
    return {"q": rng.normal(size=(4, 3)), "k": rng.normal(size=(4, 3)), "mask": mask}


def weights(q, k, mask):
    s = q @ k.T / np.sqrt(q.shape[1]) + mask
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(q, k, mask):
    return weights(q, k, mask)


def backward(grad_output, q, k, mask):
    p = weights(q, k, mask)
    ds = p * (grad_output - (p * grad_output).sum(axis=1, keepdims=True)) / np.sqrt(q.shape[1])
    return {"q": ds @ k, "k": ds.T @ q}
