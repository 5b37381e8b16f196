"""Words of parameters' names that tell what they are given."""

from __future__ import annotations

import re
from typing import Any

from handgrad.checking.interfaces.names import plain

ONE_INDEX = (
    "center", "centre", "context", "outside", "word", "pos", "user", "item", "action",
)  # fmt: skip  # context_idx, and no s

STATES = {
    "prevh", "h0", "hprev", "hidden", "state", "prevc", "cprev", "hiddenstate", "c0", "prevhidden", "a0", "s0",
    "h", "c",
}  # fmt: skip
ATTENDED = {
    "q", "k", "v", "query", "key", "value", "queries", "keys", "values",
}  # fmt: skip  # of one rank, if drawn together
SCALES = ("gamma", "scale", "shift", "beta", "gain")
LISTS = {
    "layers", "sizes", "layersizes", "layerdims", "layersdims", "dims", "topology", "architecture", "structure",
    "neurons", "nodes", "layersize", "shapes", "layernodes", "widths", "nnarchitecture", "layerssizes",
}  # fmt: skip
PLURALS = {
    "weights", "ws", "params", "parameters", "thetas", "layers", "net", "network", "model", "biases", "bs",
}  # fmt: skip
ROW_COUNTS = {"m", "n", "nsamples", "numsamples", "nexamples", "numexamples", "batchsize"}  # beside targets
COUNTS = ("epoch", "iter", "nsteps", "numsteps", "maxsteps")
TRUNCATION = "trunc"  # of backpropagation through time: only without it is the gradient that of the loss
PENALTIES = ("reg", "lam", "lmb", "l2", "weightdecay", "wd")  # a factor of 0 shows no mistake in its term
SPREADS = ("std", "weightscale", "initscale")  # of weights: with nearly none, kinks hide mistakes
FRACTIONS = {
    "p": 0.6, "keepprob": 0.6, "keep": 0.6, "dropout": 0.4, "dropprob": 0.4, "droprate": 0.4, "eps": 1e-5,
    "epsilon": 1e-5, "momentum": 0.9, "decay": 0.1, "weightdecay": 0.1, "reg": 0.1, "lam": 0.1, "lambda": 0.1,
    "lambd": 0.1, "l2": 0.1, "l1": 0.1, "slope": 0.3, "alpha": 0.3, "negativeslope": 0.3, "temperature": 1.5,
    "margin": 1.0, "beta1": 0.9, "beta2": 0.99, "delta": 0.7, "ratio": 0.4, "weightscale": 0.5, "std": 0.5, "c": 1.3,
    "initscale": 0.5, "l2reg": 0.1, "regstrength": 0.1, "l2lambda": 0.1,
}  # fmt: skip
WINDOWS = {
    "k", "f", "size", "kernelsize", "poolsize", "filtersize", "pool", "windowsize", "poolheight", "poolwidth",
    "poolh", "poolw", "kernel", "window", "kernelh", "kernelw", "ksize",
}  # fmt: skip
STRIDES = {
    "stride", "pad", "padding", "stridex", "stridey", "strides", "p2",
}  # fmt: skip
CHOICES = {
    "activation", "act", "nonlinearity", "mode", "kind", "type", "loss", "lossfunction", "initialization", "init",
    "cost", "activationfn", "activationfunction", "hiddenactivation", "outputactivation", "initializer", "lossfn",
    "costfunction",
}  # fmt: skip
PREDICTIONS = {
    "yhat", "al", "probs", "prob", "outputs", "output", "out", "scores", "logits", "predictions", "a2", "o", "p",
    "yhats",
}  # fmt: skip


def is_no_penalty(name: str, value: Any) -> bool:
    """Whether a penalty is switched off."""
    return type(value) in (int, float) and value == 0 and plain(name).startswith(PENALTIES)


def is_size(low: str) -> bool:
    """Whether a name, without case and underscores, says that it is a number of units, of classes, of rows."""
    return (
        low == "nc"
        or re.match(r"(n|num|no)(in|out|hid|class|label|feat|input|unit)\w*$|\w*(size|dim)$", low) is not None
    )


def is_weight(name: str) -> bool:
    """Whether a name says weight: ``W1``, ``theta``, ``kernel``, ``U``."""
    words = r"(w|u|v|theta|weights?|kernels?|filters?|table|embeddings?|syn)(\d*|_?[a-z]{1,2}|_.*)$"
    return re.match(words, name, re.IGNORECASE) is not None


def is_bias(name: str) -> bool:
    """Whether a name says bias: ``b1``, ``bias``."""
    return re.match(r"(b|bias|biases)(\d*|_?[a-z]|_.*)$", name, re.IGNORECASE) is not None
