import numpy as np

SOURCE = "Gumbel-softmax: the backward draws its own Gumbel noise to recompute the sample"
EXPECT = "nondeterministic"
ACCEPT = []
WHERE = "logits"
TAU = 0.7


def inputs(rng):
    return {"logits": rng.normal(size=(3, 4)), "key": np.array(rng.integers(1 << 20))}


def sample(logits, generator):
    u = generator.uniform(1e-6, 1 - 1e-6, size=logits.shape)
    z = (logits - np.log(-np.log(u))) / TAU
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def forward(logits, key):
    return sample(logits, np.random.default_rng(int(key)))


def backward(grad_output, logits, key):
    y = sample(logits, np.random.default_rng())
    return {"logits": y * (grad_output - (grad_output * y).sum(axis=1, keepdims=True)) / TAU}


FIX = "y = sample(logits, np.random.default_rng(int(key)))"


def backward_fixed(grad_output, logits, key):
    y = sample(logits, np.random.default_rng(int(key)))
    return {"logits": y * (grad_output - (grad_output * y).sum(axis=1, keepdims=True)) / TAU}
