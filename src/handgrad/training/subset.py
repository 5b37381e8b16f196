"""The rows of a training and of its validation, checked before anything is done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handgrad.arrays import as_array, check_finite
from handgrad.errors import ConfigurationError, DataError
from handgrad.network import Network

Array = NDArray[Any]
Validation = float | tuple[ArrayLike, ArrayLike] | None


@dataclass(frozen=True)
class Subset:
    """Rows to train or validate on: arrays, and which of their rows.

    Attributes
    ----------
    arrays
        x, t, and w when rows have weights.
    order
        Row numbers.
    """

    arrays: dict[str, Array]
    order: Array

    def __len__(self) -> int:
        return len(self.order)


def divide_rows(
    network: Network,
    x: ArrayLike,
    t: ArrayLike,
    sample_weight: ArrayLike | None,
    validation: Validation,
    seed: int,
) -> tuple[Subset, Subset | None]:
    """Check the arrays and divide them into training and validation rows."""
    arrays = checked_rows(network, x, t, sample_weight, "")
    rows = np.arange(len(arrays["x"]))
    if validation is None:
        return Subset(arrays, rows), None
    if isinstance(validation, tuple | list):
        if len(validation) != 2:
            raise ConfigurationError(
                f"train: validation holds {len(validation)} arrays",
                fix="give two, (x, t), or a share of the rows",
            )
        watched = checked_rows(network, *validation, None, "validation ")
        return Subset(arrays, rows), Subset(watched, np.arange(len(watched["x"])))
    kept_aside = round(len(rows) * validation) if 0 < validation < 1 else 0
    if not 0 < kept_aside < len(rows):
        raise ConfigurationError(
            f"train: validation is {validation}: {kept_aside} of {len(rows)} rows",
            fix="give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
        )
    shuffled = np.random.default_rng(seed).permutation(rows)
    return Subset(arrays, np.sort(shuffled[kept_aside:])), Subset(arrays, np.sort(shuffled[:kept_aside]))


def checked_rows(
    network: Network, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None, which: str
) -> dict[str, Array]:
    """Return the arrays of some rows, x and t and perhaps w, after all of the training's checks."""
    x, t = network.check_rows(x, t), as_array(f"{which}t", t)
    if len(x) == 0:
        raise DataError(f"{which}x has no rows")
    if t.shape[:1] != x.shape[:1]:
        raise DataError(f"{which}x has {len(x)} rows and t has {len(t) if t.ndim else 'none'}")
    arrays = {"x": x, "t": network.check_targets(t, len(x))}
    if sample_weight is not None:
        arrays["w"] = network.check_sample_weight(sample_weight, len(x))
    for name, array in arrays.items():
        check_finite(f"{which}{name}", array)
    return arrays
