import numpy as np

SOURCE = "log-softmax: g - p, correct for a one-hot upstream gradient of one, in general g - p * sum(g)"
EXPECT = "missing-local-derivative"
ACCEPT = ["ignores-upstream", "missing-term"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4))}


def forward(x):
    s = x - x.max(axis=1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=1, keepdims=True))


def backward(grad_output, x):
    return {"x": grad_output - np.exp(forward(x))}


FIX = "grad_output - np.exp(forward(x)) * grad_output.sum(axis=1, keepdims=True)"


def backward_fixed(grad_output, x):
    return {"x": grad_output - np.exp(forward(x)) * grad_output.sum(axis=1, keepdims=True)}
