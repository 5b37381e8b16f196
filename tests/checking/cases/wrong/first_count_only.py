import numpy as np

SOURCE = (
    "https://github.com/stan-dev/math/issues/1662: with a scalar parameter and a vector of counts, only"
    " the first count enters the gradient"
)
EXPECT = "missing-term"
ACCEPT = ["broadcast-not-summed"]
WHERE = "rate"


def inputs(rng):
    return {"counts": np.array([2, 0, 5, 1, 3]), "rate": np.array(rng.uniform(0.5, 2.0))}


def forward(counts, rate):
    return np.sum(counts * np.log(rate) - rate)


def backward(grad_output, counts, rate):
    total = 0.0
    for i in range(rate.size):
        total += counts[i] / rate - 1
    return {"rate": np.asarray(grad_output * total)}


FIX = "for i in range(counts.size)"


def backward_fixed(grad_output, counts, rate):
    total = 0.0
    for i in range(counts.size):
        total += counts[i] / rate - 1
    return {"rate": np.asarray(grad_output * total)}
