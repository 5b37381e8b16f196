"""The local slopes of rules that act entry by entry, measured: which entries let a gradient through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.tracing import Trace
from handgrad.layers import Node

Array = NDArray[Any]

NEAR, FAR = 3.0, 30.0  # where a rule is at its liveliest, and where it has levelled off if it ever does
OFF = 1e-3  # of the steepest slope: less lets nothing through (LeakyReLU's 0.01 does)
FLAT = 0.01  # of the steepest slope: tanh beyond ±3, sigmoid beyond ±6


@dataclass(frozen=True)
class Slopes:
    """How steep one rule is at every entry of a batch.

    Attributes
    ----------
    node
        The rule applied.
    steepness
        Of each entry, as a share of the rule's steepest slope near 0; rows down, units across.
    levels_off
        Whether it is flat far out on both sides, as tanh is and ReLU is not.
    """

    node: Node
    steepness: Array
    levels_off: bool

    @property
    def source(self) -> str:
        """The value it is applied to."""
        return self.node.inputs[0].name

    @cached_property
    def off(self) -> Array:
        """Which units let nothing through for any row."""
        return np.asarray((self.steepness < OFF).all(axis=0))

    @property
    def flat_share(self) -> float:
        """The share of entries where it is flat."""
        return float((self.steepness < FLAT).mean())


def measure_slopes(trace: Trace) -> Iterator[Slopes]:
    """Yield the slopes of every rule of a network that acts entry by entry.

    That it does is seen from its numbers: the gradient of any upstream is the upstream times the gradient of
    ones. So a rule of the user's own is measured like any other.
    """
    for node in trace.nodes:
        if node.part != "forward" or len(node.inputs) != 1 or node.rule.differentiable == ():
            continue
        z = np.asarray(trace.values[node.inputs[0].name])
        if node.output.shape != node.inputs[0].shape or not np.isfinite(z).all():
            continue
        slopes = slopes_at(node, z)
        if slopes is not None:
            yield slopes


def slopes_at(node: Node, z: Array) -> Slopes | None:
    """Return how steep a rule is at ``z``; None when it does not act entry by entry."""
    ones = np.ones_like(z)
    slope, upstream = _gradient(node, ones, z), np.random.default_rng(0).normal(size=z.shape)
    if not np.allclose(_gradient(node, upstream.astype(z.dtype), z), upstream * slope, rtol=1e-3, atol=1e-6):
        return None
    near, far = (np.linspace(-reach, reach, 601).reshape(-1, *[1] * (z.ndim - 1)) for reach in (NEAR, FAR))
    steepest = float(np.abs(_gradient(node, np.ones_like(near), near)).max())
    ends = np.abs(_gradient(node, np.ones_like(far), far)).ravel()[[0, -1]]
    if not 0 < steepest < np.inf:
        return None
    return Slopes(
        node, np.abs(slope).reshape(-1, z.shape[-1]) / steepest, bool((ends < FLAT * steepest).all())
    )


def _gradient(node: Node, upstream: Array, z: Array) -> Array:
    (name,) = node.rule.differentiable
    with np.errstate(all="ignore"):
        return np.asarray(node.rule.gradients(upstream, z, **node.options)[name])
