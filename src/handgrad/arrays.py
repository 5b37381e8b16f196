"""The user's data as arrays: conversion from other libraries, finite numbers, fingerprints that tell data apart."""

from __future__ import annotations

import hashlib
import mmap
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import DataError

Array = NDArray[Any]

CHUNK = 2**26  # bytes checked at a time, so that a mapped array may be larger than memory
BLOCK = 2**22  # bytes hashed at a time, as above
MANY = 2**20  # rows that are counted or sorted together, as a copy of all may be more than there is memory
MAPPED_BYTES = 2**24
"""Bytes read of a mapped file after which its pages are released: they count as resident memory of the process."""


def is_mapped(array: Any) -> bool:
    """Whether an array is a file that is mapped into memory, and perhaps larger than that."""
    return isinstance(array, np.memmap) and array.mode != "c"  # changes to a copy are in memory alone


def release(array: Any) -> None:
    """Release the pages of a mapped file that have been read; the system reads them again when they are needed."""
    if is_mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
        while isinstance(array, np.ndarray):
            array = array.base
        if isinstance(array, mmap.mmap):
            array.madvise(mmap.MADV_DONTNEED)


class LazyRows:
    """Some rows of an array that may be large, each slice of them read when it is asked for.

    Of a mapped file, the pages are released after each `MAPPED_BYTES`, gaps between the rows included: the system maps the
    pages around those that are read.
    """

    def __init__(self, array: Array, rows: Array | None = None) -> None:
        self.array, self.rows, self.read = array, rows, 0
        self.shape = (len(self), *array.shape[1:])
        self.dtype, self.ndim = array.dtype, array.ndim

    def __len__(self) -> int:
        return len(self.array if self.rows is None else self.rows)

    def reshape(self, *shape: int) -> LazyRows:
        """Return the rows, which statistics take flat, as they are."""
        return self

    def __getitem__(self, part: Any) -> Array:
        rows = part if self.rows is None else self.rows[part]
        if not is_mapped(self.array):  # perhaps sparse
            return self.array[rows]
        scattered = isinstance(rows, np.ndarray) and rows.size > 0
        found = np.asarray(self.array[rows]) if scattered else np.array(self.array[rows])
        self.read += (int(np.ptp(rows)) + 1) * self.array[:1].nbytes if scattered else found.nbytes
        if self.read > MAPPED_BYTES:
            self.read = 0
            release(self.array)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        whole = np.empty(self.shape, dtype or self.dtype)
        step = max(1, MAPPED_BYTES // max(1, self.array[:1].nbytes))
        for start in range(0, len(self), step):
            whole[start : start + step] = self[start : start + step]
        return whole


def some_rows(array: Array, rows: Array) -> Array:
    """Return some rows of an array; of a mapped file they are read when they are asked for."""
    return LazyRows(array, rows) if is_mapped(array) else array[rows]  # type: ignore[return-value]


def as_array(name: str, given: Any) -> Array:
    """Return an array, a tensor, a table, a memoryview or a list as a NumPy array, without a copy where possible.

    Examples
    --------
    >>> as_array("x", [[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
    handgrad.errors.DataError: x has rows of different lengths: x[0] holds 2 values and x[1] holds 1 value
    """
    if _is_masked(given):
        raise DataError(f"{name} has masked values", fix="fill them in, or remove their rows")
    if isinstance(given, np.memmap | LazyRows):  # it stays on the disk until it is used
        return given  # type: ignore[return-value]
    only_dlpack = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
    try:
        array = np.from_dlpack(given) if only_dlpack else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise DataError(_uneven_rows(name, given) or (
            f"{name}, a {type(given).__name__}, cannot be read as an array: {error}"
        )) from None  # fmt: skip
    if array.dtype == object and array.ndim == 0:
        raise DataError(
            f"{name} is a {type(given).__name__}, and an array is needed",
            fix="a sparse matrix becomes one by .toarray(), a generator by list(…)",
        )
    return array


def _is_masked(given: Any) -> bool:
    """Return whether some values of an array are masked, without importing ``numpy.ma``."""
    kind: Any = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    return isinstance(given, kind) and bool(np.any(given.mask))


def is_sparse(given: Any) -> bool:
    """Return whether something is a sparse matrix or array of scipy's, without importing scipy."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(given))


def as_rows(name: str, given: Any) -> Array:
    """Return rows as `as_array` does, sparse ones as a ``scipy.sparse.csr_array`` whose indices are checked."""
    if not is_sparse(given):
        return as_array(name, given)
    rows: Any = sys.modules["scipy.sparse"].csr_array(given)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{name} is a damaged sparse matrix: {error}") from None
    return rows


def dense(array: Any) -> Array:
    """Return a few rows as an array that has all of their numbers in memory."""
    return array.toarray() if is_sparse(array) else np.asarray(array)


def stored(array: Array) -> Array:
    """Return the numbers that an array has in memory: of a sparse one its entries."""
    return array.data if is_sparse(array) else array  # type: ignore[return-value]


def _uneven_rows(name: str, given: Any) -> str:
    """State which row of a list has another length than the first; "" where none has."""
    rows = given if isinstance(given, list | tuple) else []
    held = [
        f"holds {len(row)} value{'s' * (len(row) != 1)}" if hasattr(row, "__len__") else "is a single value"
        for row in rows
    ]
    other = next((k for k, each in enumerate(held) if each != held[0]), 0)
    if not other:
        return ""
    return f"{name} has rows of different lengths: {name}[0] {held[0]} and {name}[{other}] {held[other]}"


def check_finite(place: str, values: Array, feature_names: Sequence[str] = ()) -> None:
    """Check that every number of an array, rows first, is finite; raises `DataError` at the first that is not.

    Examples
    --------
    >>> check_finite("x", np.array([[1.0, np.nan]]), ["age", "height"])
    Traceback (most recent call last):
    handgrad.errors.DataError: x[0, 1] (feature 'height') is nan, and must be finite
      fix    remove the row, or fill in the value
    """
    if values.dtype.kind != "f" or values.size == 0:
        return
    if is_sparse(values):
        sparse: Any = values
        for entry in np.flatnonzero(~np.isfinite(sparse.data)).tolist():
            row = int(np.searchsorted(sparse.indptr, entry, "right")) - 1
            raise _not_finite(place, (row, int(sparse.indices[entry])), sparse.data[entry], feature_names)
        return
    rows = max(1, CHUNK * len(values) // values.nbytes)
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        finite = np.isfinite(part)
        if not finite.all():
            row, *column = np.argwhere(~finite)[0].tolist()
            raise _not_finite(place, (start + row, *column), part[row, *column], feature_names)
        release(values)


def _not_finite(place: str, index: tuple[int, ...], value: float, feature_names: Sequence[str]) -> DataError:
    feature = f" (feature {feature_names[index[-1]]!r})" if feature_names and index[1:] else ""
    return DataError(
        f"{place}[{', '.join(map(str, index))}]{feature} is {value}, and must be finite",
        fix="remove the row, or fill in the value",
    )


@dataclass(frozen=True)
class Fingerprint:
    """The shape and type of an array, and the SHA-256 of its numbers, row by row, in little-endian order.

    Of sparse rows, those are where each row begins, the columns of its entries, and the entries.
    """

    shape: tuple[int, ...]
    dtype: str
    sha256: str

    @classmethod
    def of(cls, array: Array, order: Array | None = None) -> Fingerprint:
        """Take the fingerprint of an array, or of some of its rows."""
        if order is not None and is_sparse(array):
            array, order = array[order], None
        digest, parts = hashlib.sha256(), [array]
        if is_sparse(array):
            sparse: Any = array
            parts = [sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), sparse.data]
        for part in parts:
            rows, length = max(1, BLOCK // max(part[:1].nbytes, 1)), len(part if order is None else order)
            for start in range(0, length, rows):
                piece = slice(start, start + rows)
                block = part[piece if order is None else order[piece]]
                digest.update(np.ascontiguousarray(block, block.dtype.newbyteorder("<")).data)
                release(part)
        shape = array.shape if order is None else (len(order), *array.shape[1:])
        return cls(shape, array.dtype.name, digest.hexdigest())

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Fingerprint:
        """Take the fingerprint of the names of columns or classes, in their order."""
        return cls((len(names),), "str", hashlib.sha256("\0".join(names).encode()).hexdigest())

    def change(self, name: str, now: Fingerprint) -> str:
        """Describe how an array has changed: rows, columns, type or numbers; "" when it has not."""
        if not self.shape:  # in a file that was edited
            return f"{name} has {now.shape[0]} rows, and had none"
        if now.shape[1:] != self.shape[1:]:
            return f"{name} has {_columns(now.shape)}, and had {_columns(self.shape)}"
        if self.dtype == now.dtype == "str":
            return f"the names of the {name} are others" if now != self else ""
        if now.shape != self.shape:
            return f"{name} has {now.shape[0]} rows, and had {self.shape[0]}"
        if now.dtype != self.dtype:
            return f"{name} holds {now.dtype}, and held {self.dtype}"
        return f"the numbers in {name} are others" if now.sha256 != self.sha256 else ""


def find_change(before: Mapping[str, Fingerprint], now: Mapping[str, Fingerprint]) -> str:
    """Describe how the first array that has changed differs; "" when none has."""
    for name in {**before, **now}:
        if name not in before or name not in now:
            return f"{name} is {'new' if name in now else 'missing'}"
    return next(filter(None, (before[name].change(name, now[name]) for name in before)), "")


def _columns(shape: tuple[int, ...]) -> str:
    if len(shape) < 2:
        return "single values"
    return " by ".join(map(str, shape[1:])) + " columns"
