"""The one judge of "equal up to rounding": how far two numbers may differ, with what each limit was calibrated on.

Two numbers that ought to be the same are compared by `close`; a gradient with a numerical one, whose own error is
known, by `gradient_tolerance` and `Bounds`. The corpus is that of ``tests/checking/cases``: 213 wrong backwards and
72 right ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

EPS = float(np.finfo(np.float64).eps)

# Of 117,000 predictions that diagnosing the corpus compared, 10,100 agree to 1e-10 of the largest entry, 107,000 are off by
# 1e-3 or more, and 320 lie between, the fewest about 1e-5.
SAME = 1e-6
REORDERED = 1e4  # rounding errors of the type: sums of 1,000 in another order differ by 20 of them

# What the error bound of a gradient is made of. Every right gradient of the corpus uses 6 % of it or less.
DIGITS = 0.6  # of the type's digits must be right: 4e-10 in float64, 8e-5 in float32
ERRORS = 8.0  # error bounds of a derivative: what extrapolation moved the estimate by is an estimate itself
SUMMED = 64.0  # rounding errors of the largest entry: an entry may be what is left of large terms
PERTURBED = 16.0  # times as far as a few inputs, a rounding error away, moved the gradient
LOST = 1e-6  # of an entry: beyond, rounding is no excuse, for digits are lost that another formula has
TELLING = 1e-2  # of an entry: with a wider error bound, it cannot be told right from wrong


def close(a: Any, b: Any, relative: float = SAME, least: float = 0.0) -> bool:
    """Whether two arrays agree, each entry to a part of the largest of the second; shapes must agree, and what is not finite.

    The largest is taken to be ``least`` where it is less.

    >>> close([1.0, 1e-9], [1.0, 0.0]), close([1.0, 1e-5], [1.0, 0.0]), close([1.0], 1.0)
    (True, False, False)
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if "b" in (a.dtype.kind, b.dtype.kind):
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        largest = float(np.abs(b).max(initial=least))
        if np.isfinite(largest):
            return bool(np.all(np.abs(a - b) <= relative * largest))  # false where it is NaN
        finite = np.isfinite(b)
        same = np.array_equal(a[~finite], b[~finite], equal_nan=True)
        return same and close(a[finite], b[finite], relative, least if np.isfinite(least) else 0.0)


def reordered(a: Any, b: Any, least: float = 0.0, *, single: bool = False) -> bool:
    """Whether two arrays agree as the same sums in another order do, in the first one's type or in float32."""
    eps = rounding_error(np.zeros(0, np.float32) if single else np.asarray(a))
    return close(a, b, REORDERED * eps, least)


def rounding_error(*arrays: Array) -> float:
    """Return the relative rounding error of the type with the fewest digits, which functions compute in."""
    kinds = [array.dtype for array in arrays if array.dtype.kind == "f" and array.dtype != np.longdouble]
    return max((float(np.finfo(kind).eps) for kind in kinds), default=EPS)


def gradient_tolerance(error: Any, size: Any, eps: float, summed: Any, perturbed: Any = 0.0) -> Array:
    """Return how far a gradient may be from the numerical one, which is known to within ``error``.

    The ``size`` of an entry is the sum of the absolute values that add up to it, ``summed`` that of the numbers that
    are rounded as they are added up, in a type with the rounding error ``eps``. ``perturbed`` is how far the gradient
    moved when its inputs did by a rounding error.
    """
    excused = np.minimum(PERTURBED * perturbed, LOST * size)
    return np.asarray(ERRORS * error + excused + eps**DIGITS * size + SUMMED * eps * summed)


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
