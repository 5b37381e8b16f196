"""Which gradients are right: between two bounds, up to a tolerance, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handgrad.checking.subject import Array
from handgrad.tolerance import gradient_tolerance


@dataclass(frozen=True)
class Bounds:
    """What one argument's gradient must be for one upstream gradient, in the argument's shape."""

    low: Array
    high: Array  # other than low at a kink only
    tolerance: Array  # how far beyond is still right
    size: Array  # of what adds up to each entry

    def excess(self, gradient: Array) -> Array:
        """Return how far each entry of a gradient of this shape is outside the bounds."""
        got = gradient.astype(self.low.dtype)
        with np.errstate(all="ignore"):
            return np.maximum(np.maximum(self.low - got, got - self.high), 0)

    def wrong(self, gradient: Array) -> Array:
        """Return which entries are wrong: all where the shape is another."""
        if gradient.shape != self.low.shape:
            return np.ones(self.low.shape, bool)
        return ~(self.excess(gradient) <= self.tolerance)  # not a number is wrong

    def nearest(self, gradient: Array) -> Array:
        """Return the gradient between the bounds that is nearest to one."""
        if gradient.shape != self.low.shape or not np.all(np.isfinite(gradient)):
            return np.asarray((self.low + self.high) / 2, np.float64)
        return np.asarray(np.clip(gradient.astype(self.low.dtype), self.low, self.high), np.float64)


@dataclass(frozen=True)
class Rounding:
    """What rounding can do to a gradient."""

    eps: float  # the rounding error of the type that is computed in
    least: float  # the size of an entry that is zero to forward's rounding
    perturbed: Array  # how far backward's gradient moved when the inputs did by a rounding error

    def bounds(self, low: Array, high: Array, error: Array | float, size: Array) -> Bounds:
        """Return bounds with their tolerance."""
        size = np.asarray(np.maximum(size, self.least))
        perturbed = self.perturbed if self.perturbed.shape == size.shape else 0.0
        tolerance = gradient_tolerance(error, size, self.eps, size.max(initial=0), perturbed)
        return Bounds(np.array(low), np.array(high), tolerance, size)
