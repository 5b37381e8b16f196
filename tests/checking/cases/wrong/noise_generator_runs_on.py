import numpy as np

SOURCE = "multiplicative noise from one module-level generator: every backward call draws the next numbers"
EXPECT = "nondeterministic"
ACCEPT = ["stale-or-mutated-state"]
WHERE = "x"
STATE = np.random.default_rng(7)


def noise(rng, shape):
    return 1 + 0.5 * rng.standard_normal(shape)


def inputs(rng):
    return {"x": rng.normal(size=(3, 4)), "b": rng.normal(size=4), "seed": np.array(rng.integers(10**6))}


def forward(x, b, seed):
    return x * noise(np.random.default_rng(int(seed)), x.shape) + b


def backward(grad_output, x, b, seed):
    return {"x": grad_output * noise(STATE, x.shape), "b": grad_output.sum(axis=0)}


FIX = "noise(np.random.default_rng(int(seed)), x.shape)"


def backward_fixed(grad_output, x, b, seed):
    return {"x": grad_output * noise(np.random.default_rng(int(seed)), x.shape), "b": grad_output.sum(axis=0)}
