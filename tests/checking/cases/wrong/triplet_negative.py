import numpy as np

SOURCE = "triplet losses written by hand: the negative example is pulled instead of pushed"
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "negative"
MARGIN = 1.5


def inputs(rng):
    return {k: rng.normal(size=(6, 3)) for k in ("anchor", "positive", "negative")}


def gap(anchor, positive, negative):
    return ((anchor - positive) ** 2).sum(1) - ((anchor - negative) ** 2).sum(1) + MARGIN


def forward(anchor, positive, negative):
    return np.maximum(gap(anchor, positive, negative), 0).mean()


def backward(grad_output, anchor, positive, negative):
    live = (gap(anchor, positive, negative) > 0)[:, None] * grad_output / len(anchor)
    da = 2 * live * (negative - positive)
    dp = -2 * live * (anchor - positive)
    dn = -2 * live * (anchor - negative)
    return {"anchor": da, "positive": dp, "negative": dn}


FIX = "dn = 2 * live * (anchor - negative)"


def backward_fixed(grad_output, anchor, positive, negative):
    live = (gap(anchor, positive, negative) > 0)[:, None] * grad_output / len(anchor)
    da = 2 * live * (negative - positive)
    dp = -2 * live * (anchor - positive)
    dn = 2 * live * (anchor - negative)
    return {"anchor": da, "positive": dp, "negative": dn}
