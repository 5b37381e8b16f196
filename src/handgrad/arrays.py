"""Arrays of other libraries, taken in where data comes in: whatever has ``__array__``, a buffer or DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import DataError


def as_array(name: str, given: Any) -> NDArray[Any]:
    """Return what is given as a NumPy array, without a copy where it is one or shares its memory.

    Parameters
    ----------
    name
        What it is, for the error: ``"x"``.
    given
        An array, a tensor, a table, a memoryview, a list of numbers or of rows.

    Raises
    ------
    DataError
        When no array can be made of it, or values in it are masked.

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


def _explained(name: str, given: Any, error: Exception) -> DataError:
    """Say why no array can be made."""
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
