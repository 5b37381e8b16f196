import numpy as np

SOURCE = (
    "regression on unscaled prices (1e6): the relative error's derivative divides once instead of twice"
    " in one summand"
)
EXPECT = "missing-term"
ACCEPT = ["wrong-local-derivative"]
WHERE = "price"


def inputs(rng):
    return {"price": 1e6 * rng.uniform(0.5, 2, size=6), "guess": 1e6 * rng.uniform(0.5, 2, size=6)}


def forward(price, guess):
    return np.sum(((guess - price) / price) ** 2)


def backward(grad_output, price, guess):
    e = (guess - price) / price
    d = 2 * grad_output * e
    return {"price": -d / price, "guess": d / price}


FIX = "dprice = -d / price * (1 + e)"


def backward_fixed(grad_output, price, guess):
    e = (guess - price) / price
    d = 2 * grad_output * e
    return {"price": -d / price * (1 + e), "guess": d / price}
