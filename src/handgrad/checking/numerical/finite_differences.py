"""Numerical derivatives of a function, from the left and from the right, each with an error bar.

Every output's slope along one coordinate is found from differences on a ladder of steps. Where left and right
agree it is the two-fold Richardson extrapolation of the central differences (error h⁶); at a kink the two
one-sided slopes are extrapolated by themselves, and every value between them is right. The error bar is how far
the extrapolation moved the estimate, and what rounding can have done to it; the rung with the smallest bar is
kept, so that a step too large (a pole, another kink) and one too small (rounding) are both passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Vector = Callable[[Array], Array]

RUNGS = 9
LARGEST_STEP = 1 / 64  # of the coordinate's scale
BETWEEN_RUNGS = 1 / 8
STEPS_NOISE = (
    16  # of the outputs' rounding over the step: what it does to the slopes from a quarter of the step
)
COARSE = 1e-9  # relative rounding that only longer steps rise above
STILL = 1e4  # rounding errors that the inputs move by, and every output that depends on them well should too
STAIRS = 0.01 / 4.0 ** np.arange(20)  # relative moves that are looked at for stairs
GOOD = 1e-11  # relative error bar that needs no further rung


@dataclass(frozen=True)
class NumericalJacobian:
    """Derivatives of m outputs along each of k coordinates.

    Attributes
    ----------
    low, high
        (m, k): the smaller and the larger of the two one-sided slopes; equal where there is no kink.
    error
        (m, k): the error bar of either.
    """

    low: Array
    high: Array
    error: Array

    @property
    def kinks(self) -> Array:
        """Which coordinates stand at a kink, (k,)."""
        return np.any(self.high - self.low > 2 * self.error, axis=0)

    def allowed(self, upstream: Array) -> tuple[Array, Array, Array]:
        """Return (low, high, error), each (k,), of the gradient Σ_m upstream_m slope_mk."""
        u = upstream.astype(self.low.dtype)[:, None]
        ends = u * self.low, u * self.high
        low, high = np.minimum(*ends).sum(axis=0), np.maximum(*ends).sum(axis=0)
        return low, high, (np.abs(u) * self.error).sum(axis=0)

    def magnitude(self, upstream: Array) -> Array:
        """Return Σ_m |upstream_m slope_mk|, (k,): the size of what adds up to the gradient."""
        return (np.abs(upstream)[:, None] * np.maximum(np.abs(self.low), np.abs(self.high))).sum(axis=0)


def numerical_jacobian(
    function: Vector, x: Array, places: Iterable[tuple[int, ...]] | None = None
) -> NumericalJacobian:
    """Return the slopes of a vector function along every coordinate of ``x``, or some.

    Parameters
    ----------
    function
        Takes an array like ``x`` and returns a vector of m numbers.
    x
        The point; its dtype is what is computed in.
    places
        The indices of some coordinates.

    Examples
    --------
    >>> found = numerical_jacobian(lambda x: np.array([np.abs(x[0]) + x[1] ** 3]), np.array([0.0, 2.0]))
    >>> found.low.round(6), found.high.round(6)
    (array([[-1., 12.]]), array([[ 1., 12.]]))
    """
    indices = list(np.ndindex(x.shape) if places is None else places)
    with np.errstate(all="ignore"):
        start, scale, noise = _start(function, x)
        columns = [_along(function, x, index, scale, start, noise) for index in indices]
    if not columns:
        empty = np.zeros((start.size, 0), start.dtype)
        return NumericalJacobian(empty, empty, empty)
    low, high, error = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    return NumericalJacobian(low, high, error)


def directional_derivatives(function: Vector, x: Array, directions: Array) -> NumericalJacobian:
    """Return the slopes along some directions, (d, \\*x.shape), instead of along the coordinates: (m, d).

    Examples
    --------
    >>> found = directional_derivatives(lambda x: x**2, np.array([1.0, 3.0]), np.array([[1.0, 1.0]]))
    >>> found.low.round(6)
    array([[2.],
           [6.]])
    """
    columns = []
    with np.errstate(all="ignore"):
        start, scale, noise = _start(function, x)
        for direction in directions:

            def line(step: Array, direction: Array = direction) -> Array:
                return function(x + step[0] * direction)

            longest = float(np.abs(direction).max(initial=0)) or 1.0
            columns.append(_along(line, np.zeros(1, x.dtype), (0,), scale / longest, start, noise))
    low, high, error = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    return NumericalJacobian(low, high, error)


def _start(function: Vector, x: Array) -> tuple[Array, float, Array]:
    """Return the outputs at ``x``, the size of a typical coordinate, and the outputs' rounding."""
    start = function(x)
    typical = np.abs(x[x != 0])
    scale = float(np.median(typical)) if typical.size else 1.0
    return start, scale, _noise(function, x, start, scale)


def _noise(function: Vector, x: Array, start: Array, scale: float) -> Array:
    """Return how much rounding can have changed each output: at least its last digits, more where it is rough.

    A function whose outputs move a lot when its input moves by a rounding error computes them as badly. One whose
    outputs stand still until the input has moved by much more may go up in stairs: then it computes in a type with
    fewer digits than it returns, or rounds, and the height of a stair is its rounding.
    """
    eps = float(np.finfo(start.dtype).eps) if start.dtype.kind == "f" else 0.0
    generator = np.random.default_rng(0)

    def moved(by: Array) -> Array:
        far = np.abs(function(x + by.astype(x.dtype)) - start)
        return np.where(np.isfinite(far), far, 0)

    choices = (generator.choice(np.array([-1, 0, 1]), x.shape) for _ in range(6))
    noise = np.max([2 * eps * np.abs(start), *(moved(eps * x * choice) for choice in choices)], axis=0)
    away = generator.choice(np.array([-1, 1]), x.shape) * np.where(x == 0, scale, x)
    # of many stairs one may be close by on one side
    still = (start != 0) & ((moved(STILL * eps * away) == 0) | (moved(-STILL * eps * away) == 0))
    if not np.any(still):
        return np.asarray(noise)
    stair = np.max([_stair(function, x, start, size * away) for size in STAIRS if size > STILL * eps], axis=0)
    seen = still & (stair > 0)
    others = float(np.median(stair[seen] / np.abs(start[seen]))) if np.any(seen) else 0.0
    stair = np.where(seen, stair, others * np.abs(start))  # one that is flat here is computed like the others
    return np.asarray(np.where(still, np.maximum(noise, stair), noise))


def _stair(function: Vector, x: Array, start: Array, away: Array) -> Array:
    """Return the height of each output's stairs on the way from ``x + away`` to twice as far; 0 where it has none.

    A function that is only flat around ``x``, as between two kinks, gives no value twice that is not the one at ``x``.
    """
    values = np.stack([function(x + (part * away).astype(x.dtype)) for part in np.linspace(1, 2, 8)])
    heights = np.abs(np.diff(values, axis=0))
    again = (heights == 0) & (values[1:] != start)
    return np.where(again.sum(axis=0) >= 2, np.nan_to_num(heights.max(axis=0)), 0)


def _along(
    function: Vector, x: Array, index: tuple[int, ...], scale: float, start: Array, noise: Array
) -> tuple[Array, Array, Array]:
    """Return (low, high, error) of every output along one coordinate: the best rung of the ladder."""
    own = float(np.abs(x[index]))
    low, high = np.zeros_like(start), np.zeros_like(start)
    error = np.full(start.shape, np.inf)
    rough = bool(np.any(noise > COARSE * np.abs(start)))
    steps = list(_steps(own, scale, 1 / 8 if rough else LARGEST_STEP))
    for k, step in enumerate(steps):
        if np.all(error <= STEPS_NOISE * noise / max(steps[k:])):
            break  # rounding alone makes every step that is left worse
        found = _rung(function, x, index, step, start, noise)
        if found is None:
            continue
        better = found[2] < error
        low, high = np.where(better, found[0], low), np.where(better, found[1], high)
        error = np.where(better, found[2], error)
        size = np.maximum(np.abs(low), np.abs(high)).max(initial=0)
        negligible = np.abs(start).max(initial=0) / max(own, scale) * 1e-3
        if error.max(initial=0) <= GOOD * max(size, negligible):
            break
    return low, high, error


def _steps(own: float, scale: float, largest: float) -> Iterator[float]:
    """Yield the steps to try, the largest first; one of them fits the coordinate's own size too."""
    for rung in range(RUNGS):
        yield max(own, scale) * largest * BETWEEN_RUNGS**rung
    if 0 < own < scale / 100:
        for rung in range(3):
            yield own * largest * BETWEEN_RUNGS**rung


def _rung(
    function: Vector, x: Array, index: tuple[int, ...], step: float, start: Array, rounding: Array
) -> tuple[Array, Array, Array] | None:
    """Return (low, high, error) from the steps h, h/2 and h/4, or None where the function ends before."""
    right, left = [], []
    for part in (1.0, 0.5, 0.25):
        above, below = x.copy(), x.copy()
        above[index] += x.dtype.type(step * part)
        below[index] -= x.dtype.type(step * part)
        up, down = above[index] - x[index], x[index] - below[index]  # the steps as they are represented
        if up == 0 or down == 0:
            return None
        f_up, f_down = function(above), function(below)
        if not (np.all(np.isfinite(f_up)) and np.all(np.isfinite(f_down))):
            return None
        right.append((f_up - start) / up)
        left.append((start - f_down) / down)
    moved = np.any([(r != 0) | (s != 0) for r, s in zip(right, left, strict=True)], axis=0)
    noise = np.where(moved, STEPS_NOISE, 1) * rounding / step  # no rounding is added up where nothing moves
    central = [(r + s) / 2 for r, s in zip(right, left, strict=True)]
    once = (4 * central[1] - central[0]) / 3, (4 * central[2] - central[1]) / 3
    smooth = (16 * once[1] - once[0]) / 15
    # half the step leaves a quarter of the error, or half of it where the slope itself has a kink
    even = np.abs(central[0] - central[1]) >= 3 * np.abs(central[1] - central[2])
    smooth_error = np.where(even, np.abs(smooth - once[1]), 2 * np.abs(smooth - central[2])) + noise
    right_end, right_error = _to_zero(right, noise)
    left_end, left_error = _to_zero(left, noise)
    apart = [r - s for r, s in zip(right, left, strict=True)]
    gap, gap_error = _to_zero(apart, noise)
    kink = (np.abs(gap) > 4 * gap_error + 1e-6 * np.abs(smooth)) & (np.abs(apart[2]) > 0.6 * np.abs(apart[0]))
    low = np.where(kink, np.minimum(left_end, right_end), smooth)
    high = np.where(kink, np.maximum(left_end, right_end), smooth)
    return low, high, np.where(kink, np.maximum(left_error, right_error), smooth_error)


def _to_zero(values: list[Array], noise: Array) -> tuple[Array, Array]:
    """Extrapolate values at the steps h, h/2, h/4 to 0, with an error bar."""
    end = (values[0] - 6 * values[1] + 8 * values[2]) / 3
    return end, np.abs(end - (2 * values[2] - values[1])) + 8 * noise
