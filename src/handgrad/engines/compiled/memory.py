"""One piece of memory for all that a step computes: two values share a place when they are never needed together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.scheduling import Schedule
from handgrad.program.lowered import LoweredValue

ALIGNMENT = 64


class Workspace:
    """The memory of what is computed and read again.

    Attributes
    ----------
    addresses
        Where each value lies.
    """

    def __init__(
        self, values: Iterable[LoweredValue], schedule: Schedule, dtype: str, batch_size: int
    ) -> None:
        self.types = {value: _type(value, dtype) for value in values}
        blocks = []
        for value, kind in self.types.items():
            made = schedule.made[value]
            size = value.size.at(batch_size) * kind.itemsize
            blocks.append((value, size, made, schedule.last_use.get(value, made)))
        self.offsets, size = arrange(blocks)
        self.memory = aligned(size)
        start: int = self.memory.ctypes.data
        self.addresses = {value: start + offset for value, offset in self.offsets.items()}

    def held(self, value: LoweredValue, n: int) -> NDArray[Any]:
        """Return the numbers of a value for ``n`` rows, as they lie there."""
        start, kind = self.offsets[value], self.types[value]
        return self.memory[start : start + value.size.at(n) * kind.itemsize].view(kind)


def _type(value: LoweredValue, dtype: str) -> np.dtype[Any]:
    kinds: dict[str, type] = {"single": np.float32, "int": np.int64, "bool": np.bool_, "weak": np.float64}
    return np.dtype(kinds.get(value.type, dtype))


def aligned(size: int) -> NDArray[np.uint8]:
    """Return bytes that start at a multiple of 64, set to zero."""
    room = np.zeros(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size]


def arrange(blocks: Iterable[tuple[Any, int, int, int]]) -> tuple[dict[Any, int], int]:
    """Return where each block starts, and how many bytes they need together.

    Parameters
    ----------
    blocks
        For each its key, its size in bytes, and the first and the last step in which it is needed.

    Examples
    --------
    >>> arrange([("a", 64, 0, 1), ("b", 64, 1, 2), ("c", 64, 2, 3)])
    ({'a': 0, 'b': 64, 'c': 0}, 128)
    """
    placed: list[tuple[int, int, int, int]] = []
    offsets: dict[Any, int] = {}
    for key, size, first, last in sorted(blocks, key=lambda block: -block[1]):
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        together = sorted(
            (start, end) for start, end, since, until in placed if since <= last and first <= until
        )
        start = 0
        for taken, end in together:
            if start + size <= taken:
                break
            start = max(start, end)
        offsets[key] = start
        placed.append((start, start + size, first, last))
    return offsets, max((end for _, end, _, _ in placed), default=0)
