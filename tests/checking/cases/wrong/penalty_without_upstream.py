import numpy as np

SOURCE = "the gradient of a penalty is added as if the upstream gradient were 1; that of the data has it"
EXPECT = "ignores-upstream"
ACCEPT = ["extra-term"]
WHERE = "W"


def inputs(rng):
    return {"x": rng.normal(size=(5, 3)), "W": rng.normal(size=(3, 2))}


def forward(x, W):
    return (np.tanh(x @ W) ** 2).sum() + 0.3 * (W**2).sum()


def backward(grad_output, x, W):
    h = np.tanh(x @ W)
    d = grad_output * 2 * h * (1 - h**2)
    return {"x": d @ W.T, "W": x.T @ d + 0.6 * W}


FIX = "0.6 * W * grad_output"


def backward_fixed(grad_output, x, W):
    h = np.tanh(x @ W)
    d = grad_output * 2 * h * (1 - h**2)
    return {"x": d @ W.T, "W": x.T @ d + 0.6 * W * grad_output}
