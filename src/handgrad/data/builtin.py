"""Sets that come with handgrad: handwritten digits, and points of the plane that no straight line divides.

digits.txt states where the digits are from.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arguments import Seed, judged
from handgrad.data.dataset import Dataset
from handgrad.errors import DataError

TURNS = 1.5  # of each spiral's arm


def digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 × 8 pixels, without any download.

    Returns
    -------
    Dataset
        ``x`` uint8 of shape (1797, 64), rows of pixels from 0 to 16; ``t`` of shape (1797,), classes 0 to 9.

    Examples
    --------
    >>> data = digits()
    >>> data.x.shape, data.x.dtype, len(data.classes)
    ((1797, 64), dtype('uint8'), 10)
    """
    with (files(__package__) / "digits.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        x, t = arrays["x"], arrays["t"]
    return Dataset("digits", x, t.astype(np.int64), "classification", tuple("0123456789"))


@judged
def moons(rows: int = 1000, noise: float = 0.1, seed: Seed = 0) -> Dataset:
    """Two half circles, each reaching into the other.

    Parameters
    ----------
    rows
        How many points, 2 or more, shared equally between the classes.
    noise
        Standard deviation of the normal noise added to each coordinate.
    seed
        The same seed gives the same points.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,) with two classes.

    Raises
    ------
    DataError
        When ``rows`` is too small, or ``noise`` is negative or not finite.

    Examples
    --------
    >>> moons(rows=6).x.shape
    (6, 2)
    """
    rng, t = _start("moons", rows, 2, noise, seed)
    angle = np.pi * rng.random(rows)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = [1.0, 0.5] - upper
    return _finish("moons", np.where(t[:, None] == 0, upper, lower), t, noise, rng)


@judged
def spirals(rows: int = 1000, noise: float = 0.03, seed: Seed = 0, arms: int = 2) -> Dataset:
    """Arms that wind around each other in the unit circle, one class each.

    Parameters
    ----------
    rows
        How many points, ``arms`` or more, shared equally between the classes.
    noise
        Standard deviation of the normal noise added to each coordinate.
    seed
        The same seed gives the same points.
    arms
        How many classes, 2 or more.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,).

    Raises
    ------
    DataError
        When ``arms`` or ``rows`` is too small, or ``noise`` is negative or not finite.

    Examples
    --------
    >>> spirals(rows=6, arms=3).t
    array([0, 1, 2, 0, 1, 2])
    """
    rng, t = _start("spirals", rows, arms, noise, seed)
    radius = np.sqrt(rng.random(rows))  # the root spreads the points evenly over the circle's area
    angle = 2 * np.pi * (TURNS * radius + t / arms)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _finish("spirals", x, t, noise, rng)


@judged
def xor(rows: int = 1000, noise: float = 0.1, seed: Seed = 0) -> Dataset:
    """Four squares around the origin: class 1 where the signs of the coordinates differ, before noise.

    Parameters
    ----------
    rows
        How many points, 2 or more, shared equally between the classes.
    noise
        Standard deviation of the normal noise added to each coordinate.
    seed
        The same seed gives the same points.

    Returns
    -------
    Dataset
        ``x`` float64 of shape (rows, 2), ``t`` of shape (rows,) with two classes.

    Raises
    ------
    DataError
        When ``rows`` is too small, or ``noise`` is negative or not finite.

    Examples
    --------
    >>> data = xor(rows=4, noise=0)
    >>> (np.sign(data.x).prod(axis=1) < 0).astype(int), data.t
    (array([0, 1, 0, 1]), array([0, 1, 0, 1]))
    """
    rng, t = _start("xor", rows, 2, noise, seed)
    x = rng.uniform(-1, 1, (rows, 2))
    x[:, 1] = np.copysign(x[:, 1], np.where(t == 0, x[:, 0], -x[:, 0]))
    return _finish("xor", x, t, noise, rng)


def _start(
    name: str, rows: int, classes: int, noise: float, seed: int
) -> tuple[np.random.Generator, NDArray[np.int64]]:
    if classes < 2:
        raise DataError(f"{name}: arms is {classes}, and must be 2 or more")
    if rows < classes:
        raise DataError(f"{name}: rows is {rows}, and must be {classes} or more, one for each class")
    if not 0 <= noise < np.inf:
        raise DataError(f"{name}: noise is {noise}, and must be 0 or more and finite")
    return np.random.default_rng(seed), np.arange(rows) % classes


def _finish(
    name: str, x: NDArray[Any], t: NDArray[np.int64], noise: float, rng: np.random.Generator
) -> Dataset:
    x = x + noise * rng.standard_normal(x.shape)
    classes = tuple(str(number) for number in range(t.max() + 1))
    return Dataset(name, x, t, "classification", classes, feature_names=("x1", "x2"))
