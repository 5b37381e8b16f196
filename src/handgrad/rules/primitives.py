"""Named primitives: what a rule needs and NumPy cannot say in one pure expression.

Each has its meaning here, in NumPy; every engine lowers the same names. A stand-alone script carries the
source of those it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.arrays import Array

__all__ = ["PRIMITIVES", "primitive"]

PRIMITIVES: dict[str, Any] = {"np": np}
"""Every name a rule may read besides its own: ``np`` and the primitives."""


def primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a pure function of arrays available, by its name, to the lines of rules."""
    PRIMITIVES[function.__name__] = function
    return function


@primitive
def rows(v: Array) -> Array:
    """Return ``v`` with all its leading axes joined into one, as a matrix of rows.

    A program leaves it out where a value is a matrix already.

    Examples
    --------
    >>> rows(np.zeros((2, 3, 5))).shape
    (6, 5)
    """
    return v.reshape(-1, v.shape[-1])


@primitive
def one_hot(t: Array, like: Array) -> Array:
    """Return 1 at each class number of ``t`` (...,) and 0 elsewhere, with the classes and dtype of ``like``.

    A number that is no class, such as an ignored label, gives a row of zeros.

    Examples
    --------
    >>> one_hot(np.array([2, 0]), np.zeros((2, 3)))
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    return (np.expand_dims(t, -1) == np.arange(like.shape[-1])).astype(like.dtype)


@primitive
def add_rows_at(i: Array, v: Array, like: Array) -> Array:
    """Return zeros like ``like`` (V, D) with row ``v[k]`` added at row ``i[k]``; repeated indices add up.

    Examples
    --------
    >>> add_rows_at(np.array([1, 1]), np.array([[2.0], [3.0]]), np.zeros((3, 1))).ravel()
    array([0., 5., 0.])
    """
    total = np.zeros_like(like)
    np.add.at(total, i, v)  # total[i] += v would keep only the last of repeated indices
    return total


@primitive
def uniform(shape: tuple[int, ...], key: tuple[int, int, int]) -> Array:
    """Return numbers in [0, 1), a pure function of ``key`` (seed, step, stream) and the position.

    The 24 bits of each number are exact in float32. Because nothing is remembered between calls, a run
    can be taken up at any step, and every engine draws the same numbers.
    SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.

    Examples
    --------
    >>> bool((uniform((2, 3), (0, 1, 1)) == uniform((2, 3), (0, 1, 1))).all())
    True
    """

    def mix(z: Array) -> Array:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    golden = np.uint64(0x9E3779B97F4A7C15)
    start = np.zeros(1, np.uint64)
    for part in key:
        start = mix(start + golden * np.array([part + 1], np.uint64))
    counter = start + golden * np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.uint64)
    return (mix(counter) >> np.uint64(40)).astype(np.float32).reshape(shape) * np.float32(2.0**-24)


@primitive
def micro_batches(size: int, *arrays: Array) -> list[tuple[Array, ...]]:
    """Return arrays of the same rows in pieces of so many rows, of which the last may have fewer.

    Examples
    --------
    >>> [x.tolist() for x, t in micro_batches(2, np.arange(5), np.zeros(5))]
    [[0, 1], [2, 3], [4]]
    """
    starts = range(0, len(arrays[0]), size)
    return [tuple(array[start : start + size] for array in arrays) for start in starts]


@primitive
def sigmoid(v: Array) -> Array:
    """Return 1 / (1 + e^-v); nothing overflows.

    Examples
    --------
    >>> sigmoid(np.array([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    e = np.exp(-np.abs(v))
    return np.where(v >= 0, 1, e) / (1 + e)


@primitive
def normal_cdf(v: Array) -> Array:
    """Return the share of the standard normal distribution below ``v``, accurate in both tails.

    NumPy has no error function. Cody's rational approximations (Rational Chebyshev Approximations for
    the Error Function, Mathematics of Computation 23, 1969), in float64, then rounded to ``v``'s dtype.

    Examples
    --------
    >>> normal_cdf(np.array([0.0, -10.0]))
    array([5.00000000e-01, 7.61985302e-24])
    """

    def ratio(upper: list[float], lower: list[float], s: Array) -> Array:
        return np.polyval(np.array(upper), s) / np.polyval(np.array(lower), s)

    u = np.abs(v.astype(np.float64)) / np.sqrt(2)
    small, middle, large = np.minimum(u, 0.5), np.clip(u, 0.46875, 4), np.clip(u, 4, 40)
    erf_small = small * ratio(
        [1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
         3.20937758913846947e3],
        [1, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3],
        small**2,
    )  # fmt: skip
    erfc_middle = np.exp(-(middle**2)) * ratio(
        [2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
         2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
         1.23033935479799725e3],
        [1, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
         3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3],
        middle,
    )  # fmt: skip
    inverse = large**-2
    series = inverse * ratio(
        [1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
         1.60837851487422766e-2, 6.58749161529837803e-4],
        [1, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
         2.33520497626869185e-3],
        inverse,
    )  # fmt: skip
    erfc_large = np.exp(-(large**2)) * (1 / np.sqrt(np.pi) - series) / large
    erfc = np.where(u <= 0.46875, 1 - erf_small, np.where(u <= 4, erfc_middle, erfc_large))
    return np.where(v < 0, erfc / 2, 1 - erfc / 2).astype(v.dtype)


@primitive
def join_last(v: Array) -> Array:
    """Return ``v`` with its last two axes joined into one: (…, A, B) as (…, A B). Its adjoint is `split_last`.

    Examples
    --------
    >>> join_last(np.zeros((2, 3, 5))).shape
    (2, 15)
    """
    return v.reshape(*v.shape[:-2], v.shape[-2] * v.shape[-1])


@primitive
def split_last(v: Array, parts: int) -> Array:
    """Return ``v`` with its last axis split in two: (…, D) as (…, parts, D / parts). Its adjoint is `join_last`.

    Examples
    --------
    >>> split_last(np.arange(6), 3)
    array([[0, 1],
           [2, 3],
           [4, 5]])
    """
    return v.reshape(*v.shape[:-1], parts, v.shape[-1] // parts)


@primitive
def block_diagonal(W: Array, groups: int) -> Array:
    """Return ``W`` (…, I / groups, O) as (…, I, O): each group of columns in rows of its own, and 0 elsewhere.

    Of one group it is ``W`` itself, and a program leaves it out. Its adjoint is `diagonal_blocks`.

    Examples
    --------
    >>> block_diagonal(np.array([[1, 2, 3, 4]]), 2)
    array([[1, 2, 0, 0],
           [0, 0, 3, 4]])
    """
    if groups == 1:
        return W
    blocks = np.expand_dims(split_last(W, groups), -4)  # (…, 1, I / groups, groups, O / groups)
    own = np.eye(groups, dtype=bool).reshape(groups, 1, groups, 1)
    return np.where(own, blocks, 0).reshape(*W.shape[:-2], groups * W.shape[-2], W.shape[-1])


@primitive
def diagonal_blocks(v: Array, groups: int, height: int) -> Array:
    """Return of a matrix (… I, O) what is within groups, as (… I / groups, O): where `block_diagonal` puts its argument.

    ``height`` is I / groups. A program leaves it out where there is one group.

    Examples
    --------
    >>> diagonal_blocks(np.array([[1, 2, 8, 9], [8, 9, 3, 4]]), 2, 1)
    array([[1, 2, 3, 4]])
    """
    if groups == 1:
        return v
    blocks = v.reshape(-1, groups, height, groups, v.shape[-1] // groups)
    own = np.eye(groups, dtype=bool).reshape(groups, 1, groups, 1)
    return np.where(own, blocks, 0).sum(axis=1).reshape(-1, v.shape[-1])


@primitive
def truncated(v: Array, t: int, every: int | None) -> Array:
    """Return ``v``, or zeros where ``t`` is the first of each ``every`` times: nothing goes from a segment to the one before.

    Without a number ``v`` is returned at every time, and a program leaves the call out.

    Examples
    --------
    >>> [truncated(np.ones(1), t, 3).item() for t in range(7)]
    [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    """
    return v if every is None else np.where(t % every > 0, v, 0)


@primitive
def windows(
    x: Array, size: tuple[int, ...], stride: int = 1, padding: int = 0, dilation: int = 1, fill: float = 0.0
) -> Array:
    """Return every window of ``x`` (…, H, W, C), channels last, as (…, P, Q, places, C). Its adjoint is `add_windows`.

    A window has ``size`` places along the axes before the channels (one, two or more axes), counted row by row and
    ``dilation`` apart; windows are ``stride`` apart; ``padding`` entries of ``fill`` are put on both ends of each axis.
    So P = (H + 2 padding - dilation (size[0] - 1) - 1) // stride + 1.

    Examples
    --------
    >>> windows(np.arange(5.0).reshape(5, 1), (3,), stride=2)[..., 0]
    array([[0., 1., 2.],
           [2., 3., 4.]])
    """
    first = x.ndim - 1 - len(size)
    around = [(0, 0)] * first + [(padding, padding)] * len(size) + [(0, 0)]
    padded = np.pad(x, around, constant_values=fill) if padding else x
    reach = tuple(dilation * (length - 1) + 1 for length in size)
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(first, x.ndim - 1)))
    apart: list[Any] = [slice(None, None, stride)] * len(size)
    within: list[Any] = [slice(None, None, dilation)] * len(size)
    seen = np.moveaxis(seen[(..., *apart, slice(None), *within)], first + len(size), -1)
    return seen.reshape(*seen.shape[: first + len(size)], -1, x.shape[-1])


@primitive
def add_windows(
    v: Array,
    sizes: tuple[int, ...],
    size: tuple[int, ...],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> Array:
    """Return zeros (…, H, W, C) with every window of ``v`` (…, P, Q, places, C) added where `windows` takes it from.

    ``sizes`` is (H, W); what falls on the padding is left out. Windows that overlap add up.

    Examples
    --------
    >>> add_windows(np.ones((2, 3, 1)), (5,), (3,), stride=2)[..., 0]
    array([1., 1., 2., 1., 1.])
    """
    first = v.ndim - 2 - len(size)
    counts, channels = v.shape[first:-2], v.shape[-1]
    padded = tuple(length + 2 * padding for length in sizes)
    total = np.zeros((*v.shape[:first], *padded, channels), v.dtype)
    for place, position in enumerate(np.ndindex(*size)):
        starts = [dilation * each for each in position]
        taken: list[Any] = [
            slice(a, a + stride * (c - 1) + 1, stride) for a, c in zip(starts, counts, strict=True)
        ]
        total[(..., *taken, slice(None))] += v[..., place, :]
    inside: list[Any] = [slice(padding, padding + length) for length in sizes]
    return total[(..., *inside, slice(None))]


@primitive
def first_largest(u: Array) -> Array:
    """Return where the first largest entry along the axis before the last is: one True for each (…, :, c).

    Examples
    --------
    >>> first_largest(np.array([[1.0, 7.0], [4.0, 7.0]]))
    array([[False,  True],
           [ True, False]])
    """
    places = np.expand_dims(np.arange(u.shape[-2]), -1)
    return np.expand_dims(u.argmax(axis=-2), -2) == places
