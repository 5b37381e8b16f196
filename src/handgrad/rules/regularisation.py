"""Dropout, whose mask is an explicit input, and the identity it becomes outside training."""

from handgrad.rules.primitives import uniform
from handgrad.rules.rule import rule
from handgrad.rules.signature import Mask

__all__ = ["dropout", "identity"]


@rule("... -> ...")
def identity(x):
    """Return the value itself: ``y = x``, so ``dx = dy``."""
    y = x
    return y


@identity.backward
def identity_backward(dy):
    dx = dy  # the Jacobian is the identity
    return dx


@rule("A..., A... -> A...", evaluation=identity)
def dropout(x, kept: Mask, *, rate=0.5):
    """Set each value to zero with probability ``rate`` in training, and scale up the others.

    Formula
        h = x · kept / (1 - rate): scaled in training, so that the expected value is x's (inverted dropout).
    Gradient
        dx = dh · kept / (1 - rate), with the same mask.
    Source
        Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, JMLR 15 (2014).
    """
    h = x * kept / (1 - rate)
    return h


@dropout.backward
def dropout_backward(dh, kept, *, rate):
    dx = dh * kept / (1 - rate)  # a diagonal Jacobian, with the same mask as forward
    return dx


@dropout.draws
def dropout_draws(shape, key, *, rate):
    kept = uniform(shape, key) >= rate  # each value is kept with probability 1 - rate
    return kept
