"""Numerical derivatives of a function, from the left and from the right, each with an error bound.

Every output's derivative along one coordinate is found from differences on a ladder of steps. Where left and right
agree it is the two-fold Richardson extrapolation of the central differences (error h⁶); at a kink the two
one-sided derivatives are extrapolated by themselves, and every value between them is right. The error bound is how far
the extrapolation moved the estimate, and what rounding can have done to it; the rung with the smallest
bound counts, so that a step too large (a pole, another kink) and one too small (rounding) are both passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Vector = Callable[[Array], Array]
Line = Callable[[float], tuple[Array, Any]]  # the outputs a step away, and the step as it is represented
Column = tuple[Array, Array, Array]  # low, high and error of every output

RUNGS = 9
LARGEST_STEP = 1 / 64  # of the coordinate's scale
LONGER_STEP = 1 / 8  # where rounding is so coarse that a shorter one does not rise above it
BETWEEN_RUNGS = 1 / 8
SHORT_STEP = (
    2.0**-17
)  # the first where evaluations are few: kinks are not met on the way, and rounding is small
FEW_DIGITS = 1e-7  # relative error bound that needs no further rung then
STEPS_NOISE = (
    16  # of the outputs' rounding over the step: what extrapolating to a quarter of it makes of that
)
COARSE = 1e-9  # relative rounding that only longer steps rise above
STILL = 1e4  # rounding errors that the inputs move by, and every output that depends on them well should too
FEW_STILL = 0.01  # of the outputs: so few are flat there, as a saturated function is, and not coarse
STAIRS = 0.01 / 4.0 ** np.arange(20)  # relative moves that are looked at for stairs
GOOD = 1e-11  # relative error bound that needs no further rung
NEGLIGIBLE = 1e-3  # of the outputs over the coordinate: so small a derivative need not be known so well
BEND = 1e-6  # of the derivative: a smaller gap between the two sides is what extrapolation leaves of a bend
STAYS = 0.6  # of a gap is there at a quarter of the step too, if it is a kink; of a bend a quarter is left


@dataclass(frozen=True)
class NumericalJacobian:
    """Derivatives of m outputs along each of k coordinates, each array (m, k)."""

    low: Array  # the smaller of the two one-sided derivatives
    high: Array  # the larger one: another at a kink only
    error: Array  # the error bound of either

    @property
    def kinks(self) -> Array:
        """Which coordinates are at a kink, (k,)."""
        return np.any(self.high - self.low > 2 * self.error, axis=0)

    def allowed(self, upstream: Array) -> tuple[Array, Array, Array]:
        """Return (low, high, error), each (k,), of the gradient Σ_m upstream_m J_mk."""
        u = upstream.astype(self.low.dtype)[:, None]
        ends = u * self.low, u * self.high
        low, high = np.minimum(*ends).sum(axis=0), np.maximum(*ends).sum(axis=0)
        return low, high, (np.abs(u) * self.error).sum(axis=0)

    def magnitude(self, upstream: Array) -> Array:
        """Return Σ_m |upstream_m J_mk|, (k,): the size of what adds up to the gradient."""
        return (np.abs(upstream)[:, None] * np.maximum(np.abs(self.low), np.abs(self.high))).sum(axis=0)


def numerical_jacobian(
    function: Vector, x: Array, places: Iterable[tuple[int, ...]] | None = None, noise: Array | None = None
) -> NumericalJacobian:
    """Return the derivatives of a vector function along every coordinate of ``x``, or those at some indices.

    They are computed in the type of ``x``. ``noise`` is the `rounding_noise` at ``x``, where it is known.

    >>> found = numerical_jacobian(lambda x: np.array([np.abs(x[0]) + x[1] ** 3]), np.array([0.0, 2.0]))
    >>> found.low.round(6), found.high.round(6)
    (array([[-1., 12.]]), array([[ 1., 12.]]))
    """

    def along(index: tuple[int, ...]) -> Line:
        def at(step: float) -> tuple[Array, Any]:
            moved = x.copy()
            moved[index] += x.dtype.type(step)
            return function(moved), moved[index] - x[index]

        return at

    chosen = np.ndindex(x.shape) if places is None else places
    return _jacobian(function, x, [(along(index), float(np.abs(x[index])), 1.0) for index in chosen], noise)


def directional_derivatives(
    function: Vector, x: Array, directions: Array, noise: Array | None = None, *, few: bool = False
) -> NumericalJacobian:
    """Return the derivatives along some directions, (d, \\*x.shape), instead of along the coordinates: (m, d).

    With ``few`` evaluations of the function, to fewer digits.

    >>> found = directional_derivatives(lambda x: x**2, np.array([1.0, 3.0]), np.array([[1.0, 1.0]]))
    >>> found.low.round(6)
    array([[2.],
           [6.]])
    """

    def along(direction: Array) -> Line:
        def at(step: float) -> tuple[Array, Any]:
            taken = x.dtype.type(step)
            return function(x + taken * direction), taken

        return at

    largest = (float(np.abs(direction).max(initial=0)) or 1.0 for direction in directions)
    lines = [(along(direction), 0.0, most) for direction, most in zip(directions, largest, strict=True)]
    return _jacobian(function, x, lines, noise, few=few)


def _jacobian(
    function: Vector,
    x: Array,
    lines: list[tuple[Line, float, float]],
    noise: Array | None,
    *,
    few: bool = False,
) -> NumericalJacobian:
    """Return the derivatives along lines, each with its coordinate's size and how far one step moves any coordinate."""
    with np.errstate(all="ignore"):
        start, scale = function(x), scale_of(x)
        noise = rounding_noise(function, x) if noise is None else noise
        columns = [_derivative(line, own, scale / most, start, noise, few=few) for line, own, most in lines]
    if not columns:
        return NumericalJacobian(*[np.zeros((start.size, 0), start.dtype)] * 3)
    return NumericalJacobian(*(np.stack(part, axis=1) for part in zip(*columns, strict=True)))


def scale_of(x: Array) -> float:
    """Return the size of a typical entry that is not zero; 1 where there is none."""
    typical = np.abs(x[x != 0])
    return float(np.median(typical)) if typical.size else 1.0


def rounding_noise(function: Vector, x: Array, draws: int = 6) -> Array:
    """Return how much rounding can have changed each output: at least its last digits, more where it is rough.

    A function whose outputs move a lot when its input moves by a rounding error computes them as badly. One whose
    outputs stand still until the input has moved by much more may go up in stairs: then it computes in a type with
    fewer digits than it returns, or rounds, and the height of a stair is its rounding.
    """
    start, scale = function(x), scale_of(x)
    eps = float(np.finfo(start.dtype).eps) if start.dtype.kind == "f" else 0.0
    generator = np.random.default_rng(0)

    def moved(by: Array) -> Array:
        far = np.abs(function(x + by.astype(x.dtype)) - start)
        return np.where(np.isfinite(far), far, 0)

    choices = (generator.choice(np.array([-1, 0, 1]), x.shape) for _ in range(draws))
    noise = np.max([2 * eps * np.abs(start), *(moved(eps * x * choice) for choice in choices)], axis=0)
    away = generator.choice(np.array([-1, 1]), x.shape) * np.where(x == 0, scale, x)
    other = generator.choice(np.array([-1, 1]), x.shape) * away  # of many outputs, some stand still by chance
    still = start != 0
    for way in (away, other):  # of many stairs one may be close by on one side
        still &= (moved(STILL * eps * way) == 0) | (moved(-STILL * eps * way) == 0)
        if still.sum() <= FEW_STILL * np.sum(start != 0):
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


def _derivative(
    line: Line, own: float, scale: float, start: Array, noise: Array, *, few: bool = False
) -> Column:
    """Return (low, high, error) of every output along a line: for each the best rung of the ladder."""
    low, high = np.zeros_like(start), np.zeros_like(start)
    error = np.full(start.shape, np.inf)
    rough = bool(np.any(noise > COARSE * np.abs(start)))
    smooth, good = (SHORT_STEP, FEW_DIGITS) if few else (LARGEST_STEP, GOOD)
    steps = list(_steps(own, scale, LONGER_STEP if rough else smooth))
    for k, step in enumerate(steps):
        if np.all(error <= STEPS_NOISE * noise / max(steps[k:])):
            break  # rounding alone makes every step that is left worse
        found = _rung(line, step, start, noise)
        if found is None:
            continue
        better = found[2] < error
        low, high = np.where(better, found[0], low), np.where(better, found[1], high)
        error = np.where(better, found[2], error)
        size = np.maximum(np.abs(low), np.abs(high)).max(initial=0)
        negligible = np.abs(start).max(initial=0) / max(own, scale) * NEGLIGIBLE
        if error.max(initial=0) <= good * max(size, negligible):
            break
    return low, high, error


def _steps(own: float, scale: float, largest: float) -> Iterator[float]:
    """Yield the steps to try, the largest first; one of them fits the coordinate's own size too."""
    for rung in range(RUNGS):
        yield max(own, scale) * largest * BETWEEN_RUNGS**rung
    if 0 < own < scale / 100:
        for rung in range(3):
            yield own * largest * BETWEEN_RUNGS**rung


def _rung(line: Line, step: float, start: Array, rounding: Array) -> Column | None:
    """Return (low, high, error) from the steps h, h/2 and h/4, or None where the function ends before."""
    right, left = [], []  # one-sided differences
    for part in (1.0, 0.5, 0.25):
        (above, up), (below, down) = line(step * part), line(-step * part)
        if up == 0 or down == 0 or not (np.all(np.isfinite(above)) and np.all(np.isfinite(below))):
            return None
        right.append((above - start) / up)
        left.append((below - start) / down)
    moved = np.any([(r != 0) | (s != 0) for r, s in zip(right, left, strict=True)], axis=0)
    noise = np.where(moved, STEPS_NOISE, 1) * rounding / step  # no rounding is added up where nothing moves
    central = [(r + s) / 2 for r, s in zip(right, left, strict=True)]
    once = (4 * central[1] - central[0]) / 3, (4 * central[2] - central[1]) / 3
    smooth = (16 * once[1] - once[0]) / 15
    # half the step leaves a quarter of the error, or half of it where the derivative itself has a kink
    even = np.abs(central[0] - central[1]) >= 3 * np.abs(central[1] - central[2])
    smooth_error = np.where(even, np.abs(smooth - once[1]), 2 * np.abs(smooth - central[2])) + noise
    right_end, right_error = _to_zero(right, noise)
    left_end, left_error = _to_zero(left, noise)
    apart = [r - s for r, s in zip(right, left, strict=True)]
    gap, gap_error = _to_zero(apart, noise)
    clear = np.abs(gap) > 4 * gap_error + BEND * np.abs(smooth)
    kink = clear & (np.abs(apart[2]) > STAYS * np.abs(apart[0]))
    low = np.where(kink, np.minimum(left_end, right_end), smooth)
    high = np.where(kink, np.maximum(left_end, right_end), smooth)
    return low, high, np.where(kink, np.maximum(left_error, right_error), smooth_error)


def _to_zero(values: list[Array], noise: Array) -> tuple[Array, Array]:
    """Extrapolate values at the steps h, h/2, h/4 to 0, with an error bound."""
    end = (values[0] - 6 * values[1] + 8 * values[2]) / 3
    return end, np.abs(end - (2 * values[2] - values[1])) + 8 * noise
