import numpy as np

SOURCE = (
    "https://github.com/chainer/chainer/pull/4190: NormalizeL2's backward was wrong for an eps that matters"
)
EXPECT = "wrong-local-derivative"
ACCEPT = ["wrong-evaluation-point", "missing-term"]
WHERE = "x"
EPS = 0.5


def inputs(rng):
    return {"x": rng.normal(size=(4, 3))}


def forward(x):
    return x / (np.sqrt((x**2).sum(axis=1, keepdims=True)) + EPS)


def backward(grad_output, x):
    norm = np.sqrt((x**2).sum(axis=1, keepdims=True))
    inner = (grad_output * x).sum(axis=1, keepdims=True)
    return {"x": (grad_output - x * inner / norm**2) / norm}


FIX = "g / (norm + EPS) - x * inner / (norm * (norm + EPS)**2)"


def backward_fixed(grad_output, x):
    norm = np.sqrt((x**2).sum(axis=1, keepdims=True))
    inner = (grad_output * x).sum(axis=1, keepdims=True)
    return {"x": grad_output / (norm + EPS) - x * inner / (norm * (norm + EPS) ** 2)}
