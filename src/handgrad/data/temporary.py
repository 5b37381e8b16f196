"""Arrays in temporary files: written in parts, then mapped into memory."""

from __future__ import annotations

import math
import weakref
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import DataError


class TemporaryArray:
    """An array of 8-byte numbers in a file that is gone when nothing uses it any more, even after a kill."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.file: Any = TemporaryFile()  # noqa: SIM115 - closed by the next line
        weakref.finalize(self, self.file.close)  # what has been mapped stays

    def write(self, place: int, values: Array) -> None:
        """Write numbers, the first of them at a place in the flat array; a `DataError` when the disk is full."""
        try:
            self.file.seek(8 * place)
            self.file.write(values.tobytes())
            self.file.flush()
        except OSError as error:
            raise DataError(
                f"{gettempdir()}: a temporary file cannot be written: {error.strerror}",
                given=f"{8 * math.prod(self.shape) / 1e9:.3g} GB at most are needed there",
                fix="make room there, or set TMPDIR to a folder of another disk",
            ) from error

    def read(self, place: int, count: int) -> Array:
        """Return numbers that have been written."""
        self.file.seek(8 * place)
        return np.frombuffer(self.file.read(8 * count), np.float64)

    def mapped(self) -> Array:
        """Return the array, float64, read-only; what has not been written is 0."""
        self.file.truncate(8 * math.prod(self.shape))
        return np.memmap(self.file, np.float64, "r", shape=self.shape)
