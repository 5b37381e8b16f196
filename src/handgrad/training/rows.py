"""The rows of a training, checked, and divided into those to train on and those to watch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arrays import Array, as_array, check_finite
from handgrad.errors import ConfigurationError, DataError
from handgrad.network import Network

Validation = float | tuple[ArrayLike, ArrayLike] | None


@dataclass(frozen=True)
class Subset:
    """Rows to train or validate on: the arrays x, t and, where rows have weights, w; the numbers of the rows."""

    arrays: dict[str, Array]
    order: Array

    def __len__(self) -> int:
        return len(self.order)


def divide_rows(
    network: Network, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None, validation: Validation,
    seed: int,
) -> tuple[Subset, Subset | None]:  # fmt: skip
    """Check the arrays and divide them into training and validation rows."""
    arrays = checked_rows(network, x, t, sample_weight)
    rows = np.arange(len(arrays["t"]))
    if validation is None:
        return Subset(arrays, rows), None
    if isinstance(validation, tuple | list):
        if len(validation) != 2:
            raise ConfigurationError(
                f"train: validation holds {len(validation)} arrays",
                fix="give two, (x, t), or a share of the rows",
            )
        watched = checked_rows(network, *validation, which="validation ")
        return Subset(arrays, rows), Subset(watched, np.arange(len(watched["t"])))
    held_out = round(len(rows) * validation) if 0 < validation < 1 else 0
    if not 0 < held_out < len(rows):
        raise ConfigurationError(
            f"train: validation is {validation}: {held_out} of {len(rows)} rows",
            fix="give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
        )
    shuffled = np.random.default_rng(seed).permutation(rows)
    return Subset(arrays, np.sort(shuffled[held_out:])), Subset(arrays, np.sort(shuffled[:held_out]))


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
