"""Whole arrays in a few numbers, and few enough of their numbers to be shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.explaining.record import Sample, Summary

MOST = 2048  # numbers of an array that are kept


def sample(value: Any, most: int = MOST) -> Sample:
    """Keep every k-th place of the longest axes, until there are few enough numbers.

    Examples
    --------
    >>> sample([[1.0, 2.0, 3.0]], most=2)
    Sample(shape=(1, 2), steps=(1, 2), numbers=(1.0, 3.0))
    """
    array = np.asarray(value)
    steps = [1] * array.ndim
    sizes = list(array.shape)
    while np.prod(sizes) > most:
        axis = int(np.argmax(sizes))
        steps[axis] += 1
        sizes[axis] = -(-array.shape[axis] // steps[axis])
    kept = array[tuple(slice(None, None, step) for step in steps)]
    return Sample(kept.shape, tuple(steps), tuple(map(_shown, kept.ravel().tolist())))


def _shown(number: Any) -> float | None:
    """Return a number with six digits; None where it is not finite."""
    return float(f"{number:.6g}") + 0.0 if np.isfinite(number) else None  # no -0


def summarise(value: Any) -> Summary:
    """Return an array's range, mean, spread and size."""
    array = np.asarray(value, np.float64).ravel()
    finite = array[np.isfinite(array)]
    bad = array.size - finite.size
    if not finite.size:
        return Summary(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, bad)
    with np.errstate(over="ignore"):
        numbers = [finite.min(), finite.mean(), finite.max(), finite.std(), np.linalg.norm(finite)]
    least, mean, most, deviation, norm = np.nan_to_num(numbers).tolist()
    return Summary(least, mean, most, deviation, norm, float(np.mean(array == 0)), bad)
