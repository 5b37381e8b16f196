"""The user's data as arrays: whatever has ``__array__``, a buffer or DLPack, and finite numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import DataError

CHUNK = 2**26  # bytes checked at a time, so that a mapped array may be larger than memory


def as_array(name: str, given: Any) -> NDArray[Any]:
    """Return an array, a tensor, a table, a memoryview or a list as a NumPy array, without a copy where possible.

    Raises
    ------
    DataError
        When no array can be made of it, or values in it are masked; ``name`` is what it is called there.

    Examples
    --------
    >>> as_array("x", [[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
    handgrad.errors.DataError: x has rows of different lengths: x[0] holds 2 values and x[1] holds 1 value
    """
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise DataError(f"{name} has masked values", fix="fill them in, or remove their rows")
    if isinstance(given, np.memmap):  # it stays on the disk until it is used
        return given
    only_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
    try:
        array = np.from_dlpack(given) if only_dlpack else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise _explained(name, given, error) from None
    if array.dtype == object and array.ndim == 0:
        raise DataError(
            f"{name} is a {type(given).__name__}, and an array is needed",
            fix="a sparse matrix becomes one by .toarray(), a generator by list(…)",
        )
    return array


def check_finite(place: str, values: NDArray[Any], feature_names: Sequence[str] = ()) -> None:
    """Check that every number of an array, rows first, is finite.

    Raises
    ------
    DataError
        With ``place``, the position and the value of the first that is not, and the name of its column.

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


def _explained(name: str, given: Any, error: Exception) -> DataError:
    """Return the error for what is no array."""
    if isinstance(given, list | tuple):
        lengths = [len(row) if hasattr(row, "__len__") else None for row in given]
        other = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
        if other is not None:
            first, last = (_count(length) for length in (lengths[0], lengths[other]))
            return DataError(
                f"{name} has rows of different lengths: {name}[0] {first} and {name}[{other}] {last}"
            )
    return DataError(f"{name}, a {type(given).__name__}, cannot be read as an array: {error}")


def _count(length: int | None) -> str:
    if length is None:
        return "is a single value"
    return f"holds {length} value{'s' * (length != 1)}"
