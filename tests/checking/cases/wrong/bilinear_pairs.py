import numpy as np

SOURCE = "bilinear scoring of pairs: both sides are summed over the pairs before the outer product"
EXPECT = "averaged-batch"
ACCEPT = []
WHERE = "R"


def inputs(rng):
    return {"head": rng.normal(size=(6, 3)), "tail": rng.normal(size=(6, 2)), "R": rng.normal(size=(3, 2))}


def forward(head, tail, R):
    return np.einsum("ni,ij,nj->n", head, R, tail)


def backward(grad_output, head, tail, R):
    dhead = grad_output[:, None] * (tail @ R.T)
    dtail = grad_output[:, None] * (head @ R)
    dR = np.outer(grad_output @ head, tail.sum(axis=0))
    return {"head": dhead, "tail": dtail, "R": dR}


FIX = 'dR = np.einsum("n,ni,nj->ij", grad_output, head, tail)'


def backward_fixed(grad_output, head, tail, R):
    dhead = grad_output[:, None] * (tail @ R.T)
    dtail = grad_output[:, None] * (head @ R)
    dR = np.einsum("n,ni,nj->ij", grad_output, head, tail)
    return {"head": dhead, "tail": dtail, "R": dR}
