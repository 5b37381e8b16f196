"""The rows of a training, checked, and divided into those to train on and those to watch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arrays import Array, as_array, check_finite, is_mapped, release
from handgrad.errors import ConfigurationError, DataError
from handgrad.network import Network

Validation = float | tuple[ArrayLike, ArrayLike] | Array | None

BLOCK, MIXED = 4096, 64
"""How the rows of a file are shuffled: blocks of so many come in a random order, and of so many blocks the rows."""


@dataclass(frozen=True)
class Subset:
    """Rows to train or validate on: the arrays x, t and, where rows have weights, w; the numbers of the rows.

    ``chosen`` rows were given by number; the others of the arrays are then no part of the training.
    """

    arrays: dict[str, Array]
    order: Array
    chosen: bool = False

    def __len__(self) -> int:
        return len(self.order)

    @property
    def mapped(self) -> bool:
        """Whether the rows are in a file, to be read where they are needed."""
        return is_mapped(self.arrays["x"])

    def release(self) -> None:
        """Release the pages of a file that have been read."""
        for array in self.arrays.values():
            release(array)

    def shuffled(self, seed: int, epoch: int) -> Array:
        """Return the rows in the order of an epoch.

        Rows in memory are all shuffled. Those of a file are read nearly one after the other: 64 blocks of 4,096 rows,
        drawn at random, are shuffled among each other, then the next 64. They come as a `FileOrder`.
        """
        if self.mapped and len(self.order) > BLOCK * MIXED:
            return FileOrder(self.order, seed, epoch)  # type: ignore[return-value]
        return self.order[np.random.default_rng([seed, epoch]).permutation(len(self.order))]


class FileOrder:
    """The shuffled rows of a file: slices of them are computed when they become an array, since there may be many."""

    def __init__(self, rows: Array, seed: int, epoch: int) -> None:
        self.rows, self.seeds, self.places = rows, (seed, epoch), range(len(rows))
        self.blocks = np.random.default_rng(self.seeds).permutation(-(-len(rows) // BLOCK))
        lengths = np.minimum(BLOCK, len(rows) - self.blocks * BLOCK)
        self.starts = [0, *np.cumsum(np.add.reduceat(lengths, range(0, len(lengths), MIXED))).tolist()]
        self.mixed = lru_cache(2)(self._mixed)  # slices that follow one another need each twice

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> FileOrder:
        found = copy(self)
        found.places = self.places[part]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        first, last = self.places.start, self.places.stop
        numbers = range(bisect_right(self.starts, first) - 1, bisect_left(self.starts, last))
        found = np.concatenate([self.rows[:0], *map(self.mixed, numbers)])
        return found[first - self.starts[numbers.start] :][: last - first].astype(dtype or found.dtype)

    def _mixed(self, number: int) -> Array:
        """Return the rows of 64 blocks, shuffled."""
        blocks = self.blocks[number * MIXED : (number + 1) * MIXED]
        rows = np.concatenate([self.rows[k * BLOCK : (k + 1) * BLOCK] for k in blocks])
        np.random.default_rng([*self.seeds, number]).shuffle(rows)
        return rows


def divide_rows(
    network: Network, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None, rows: Array | None,
    validation: Validation, seed: int,
) -> tuple[Subset, Subset | None]:  # fmt: skip
    """Check the arrays and divide them into training and validation rows."""
    arrays = checked_rows(network, x, t, sample_weight)
    count = len(arrays["t"])
    chosen = rows is not None
    smallest = np.int32 if count < 2**31 else np.int64  # of a file there may be many
    rows = np.arange(count, dtype=smallest) if rows is None else _numbers("rows", rows, count)
    if validation is None:
        return Subset(arrays, rows, chosen), None
    if isinstance(validation, np.ndarray):
        watching = Subset(arrays, _numbers("validation", validation, count), chosen=True)
        return Subset(arrays, rows, chosen), watching
    if isinstance(validation, tuple | list):
        if len(validation) != 2:
            raise ConfigurationError(
                f"train: validation holds {len(validation)} arrays",
                fix="give two, (x, t), or a share of the rows",
            )
        watched = checked_rows(network, *validation, which="validation ")
        return Subset(arrays, rows, chosen), Subset(watched, np.arange(len(watched["t"])))
    held_out = round(len(rows) * validation) if 0 < validation < 1 else 0
    if not 0 < held_out < len(rows):
        raise ConfigurationError(
            f"train: validation is {validation}: {held_out} of {len(rows)} rows",
            fix="give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
        )
    shuffled = np.random.default_rng(seed).permutation(rows)
    parts = np.sort(shuffled[held_out:]), np.sort(shuffled[:held_out])
    return Subset(arrays, parts[0], chosen), Subset(arrays, parts[1], chosen)


def _numbers(name: str, rows: Array, count: int) -> Array:
    """Return numbers of rows, or raise the reason why they are none."""
    if (
        rows.ndim != 1
        or rows.dtype.kind not in "iu"
        or not len(rows)
        or rows.min() < 0
        or rows.max() >= count
    ):
        raise DataError(
            f"train: {name} are no numbers of rows",
            given=f"{rows.dtype} of shape {rows.shape}; x has {count} rows",
            fix="give whole numbers from 0, as `handgrad.data.split` returns them",
        )
    return rows


def checked_rows(
    network: Network, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None = None, which: str = ""
) -> dict[str, Array]:
    """Return the arrays of some rows, x and t and perhaps w, after all of the training's checks."""
    x, t = network.check_rows(x, t), as_array(f"{which}t", t)
    if x.shape[0] == 0:
        raise DataError(f"{which}x has no rows")
    if t.shape[:1] != x.shape[:1]:
        raise DataError(f"{which}x has {x.shape[0]} rows and t has {len(t) if t.ndim else 'none'}")
    arrays = network.check_batch(x, t, sample_weight)
    for name, array in arrays.items():
        check_finite(f"{which}{name}", array)
    return arrays
