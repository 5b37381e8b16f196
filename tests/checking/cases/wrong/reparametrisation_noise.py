import numpy as np

SOURCE = "VAE by hand: the backward draws new noise for z = mu + sigma * eps instead of the forward's eps"
EXPECT = "nondeterministic"
ACCEPT = ["stale-or-mutated-state"]
WHERE = "logvar"


def inputs(rng):
    return {
        "mu": rng.normal(size=(3, 2)),
        "logvar": rng.normal(size=(3, 2)),
        "seed": np.array(rng.integers(1000)),
    }


def forward(mu, logvar, seed):
    eps = np.random.default_rng(int(seed)).standard_normal(mu.shape)
    return mu + np.exp(0.5 * logvar) * eps


def backward(grad_output, mu, logvar, seed):
    eps = np.random.default_rng().standard_normal(mu.shape)
    return {"mu": grad_output.copy(), "logvar": grad_output * 0.5 * np.exp(0.5 * logvar) * eps}


FIX = "eps from default_rng(int(seed)), as in the forward"


def backward_fixed(grad_output, mu, logvar, seed):
    eps = np.random.default_rng(int(seed)).standard_normal(mu.shape)
    return {"mu": grad_output.copy(), "logvar": grad_output * 0.5 * np.exp(0.5 * logvar) * eps}
