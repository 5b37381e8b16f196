import numpy as np

SOURCE = "randomised leaky ReLU whose backward draws new slopes for the negative part"
EXPECT = "nondeterministic"
ACCEPT = []
WHERE = "x"


def slopes(seed, shape):
    return np.random.default_rng(seed).uniform(1 / 8, 1 / 3, size=shape)


def inputs(rng):
    return {"x": rng.normal(size=(4, 4)), "key": np.array(rng.integers(2**30))}


def forward(x, key):
    a = slopes(int(key), x.shape)
    return np.where(x >= 0, x, a * x)


def backward(grad_output, x, key):
    fresh = np.random.default_rng().integers(2**30)
    a = slopes(fresh, x.shape)
    return {"x": grad_output * np.where(x >= 0, 1.0, a)}


FIX = "a = slopes(int(key), x.shape)"


def backward_fixed(grad_output, x, key):
    a = slopes(int(key), x.shape)
    return {"x": grad_output * np.where(x >= 0, 1.0, a)}
