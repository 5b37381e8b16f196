"""Fingerprints of data: shape, type and hash of each array, and what has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 2**22  # bytes hashed at a time: a mapped file need not fit into memory


@dataclass(frozen=True)
class Fingerprint:
    """The shape and type of an array, and the SHA-256 of its numbers, row by row, in little-endian order.

    Examples
    --------
    >>> taken = Fingerprint.of(np.arange(6, dtype=np.int64).reshape(3, 2))
    >>> taken.shape, taken.dtype, taken.sha256[:8]
    ((3, 2), 'int64', 'f190072c')
    """

    shape: tuple[int, ...]
    dtype: str
    sha256: str

    @classmethod
    def of(cls, array: NDArray[Any]) -> Fingerprint:
        """Take the fingerprint of an array."""
        digest = hashlib.sha256()
        rows = max(1, BLOCK // max(array[:1].nbytes, 1))
        for start in range(0, len(array), rows):
            block = array[start : start + rows]
            digest.update(np.ascontiguousarray(block, block.dtype.newbyteorder("<")).data)
        return cls(array.shape, array.dtype.name, digest.hexdigest())

    def change(self, name: str, now: Fingerprint) -> str:
        """Describe how an array has changed: rows, columns, type or numbers; "" when it has not.

        Examples
        --------
        >>> Fingerprint.of(np.zeros((3, 2))).change("x", Fingerprint.of(np.zeros((4, 2))))
        'x has 4 rows, and had 3'
        """
        if now.shape[1:] != self.shape[1:]:
            return f"{name} has {_columns(now.shape)}, and had {_columns(self.shape)}"
        if now.shape != self.shape:
            return f"{name} has {now.shape[0]} rows, and had {self.shape[0]}"
        if now.dtype != self.dtype:
            return f"{name} holds {now.dtype}, and held {self.dtype}"
        return f"the numbers in {name} are others" if now.sha256 != self.sha256 else ""


def find_change(before: Mapping[str, Fingerprint], now: Mapping[str, Fingerprint]) -> str:
    """Describe how the first array that has changed differs; "" when none has.

    Examples
    --------
    >>> t = Fingerprint.of(np.zeros(3))
    >>> find_change({"t": t}, {"t": t, "w": t})
    'w is new'
    """
    for name in {**before, **now}:
        if name not in before or name not in now:
            return f"{name} is {'new' if name in now else 'missing'}"
    return next(filter(None, (before[name].change(name, now[name]) for name in before)), "")


def _columns(shape: tuple[int, ...]) -> str:
    if len(shape) < 2:
        return "single values"
    return " by ".join(map(str, shape[1:])) + " columns"
