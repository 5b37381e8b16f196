import numpy as np

SOURCE = "layer drop: the backward tosses its own coin for each example's branch"
EXPECT = "nondeterministic"
ACCEPT = []
WHERE = ["x", "W"]
ALIVE = 0.6


def inputs(rng):
    return {
        "x": rng.normal(size=(20, 3)),
        "W": rng.normal(size=(3, 3)),
        "seed": np.array(rng.integers(10**6)),
    }


def coins(seed, n):
    return (np.random.default_rng(seed).uniform(size=(n, 1)) < ALIVE) / ALIVE


def forward(x, W, seed):
    return x + coins(int(seed), len(x)) * np.maximum(x @ W, 0)


def backward(grad_output, x, W, seed):
    dz = grad_output * coins(None, len(x)) * (x @ W > 0)
    return {"x": grad_output + dz @ W.T, "W": x.T @ dz}


FIX = "coins(int(seed), len(x))"


def backward_fixed(grad_output, x, W, seed):
    dz = grad_output * coins(int(seed), len(x)) * (x @ W > 0)
    return {"x": grad_output + dz @ W.T, "W": x.T @ dz}
