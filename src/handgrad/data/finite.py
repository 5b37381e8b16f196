"""One check for every number that is used as data: it is finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import DataError

CHUNK = 2**26  # bytes looked at at a time, so that a mapped array may be larger than memory


def check_finite(place: str, values: NDArray[Any], feature_names: Sequence[str] = ()) -> None:
    """Check that every number of an array is finite, a part at a time.

    Parameters
    ----------
    place
        Of the array, ``"people.csv: x"``, for the error.
    values
        Rows first.
    feature_names
        Names of the columns, to name the one.

    Raises
    ------
    DataError
        With the position and the value of the first that is not.

    Examples
    --------
    >>> check_finite("x", np.array([[1.0, np.nan]]), ["age", "height"])
    Traceback (most recent call last):
    handgrad.errors.DataError: x[0, 1] (feature 'height') is nan, and must be finite
      fix    remove the row, or fill in the value
    """
    if values.dtype.kind != "f" or values.size == 0:
        return
    rows = max(1, CHUNK * len(values) // values.nbytes)
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        finite = np.isfinite(part)
        if not finite.all():
            row, *column = np.argwhere(~finite)[0].tolist()
            feature = f" (feature {feature_names[column[0]]!r})" if feature_names and column else ""
            index = ", ".join(map(str, (start + row, *column)))
            raise DataError(
                f"{place}[{index}]{feature} is {part[row, *column]}, and must be finite",
                fix="remove the row, or fill in the value",
            )
