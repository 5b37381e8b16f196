"""Sparse rows (CSR): an input of which only the entries are in memory, and its products with a matrix.

Such rows are multiplied and nothing else (`ProgramLine.only_multiplies`), so they are neither gathered nor made dense: a
product goes through the entries of the rows that are the batch's, and adds a multiple of a row of the one matrix to a row
of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.elementary import as_kind
from handgrad.engines.compiled.ir import LANES, ONE, ZERO, Code, Number, literal, module

Array = NDArray[Any]

AT = " at "
"""Between the types of entries and of column numbers, where an input's type is written as text: ``float at i32``."""


@dataclass(frozen=True)
class SparseRows:
    """Entries with their columns; those of row i are the ones from ``starts[i]`` to before ``starts[i + 1]``."""

    starts: Array
    columns: Array
    entries: Array

    @classmethod
    def of(cls, rows: Any, sources: Mapping[np.dtype[Any], str], dtype: str) -> SparseRows:
        """Read rows with the attributes of scipy's; `IndexError` when one of their numbers lies outside."""
        starts, columns = np.asarray(rows.indptr, rows.indices.dtype), rows.indices
        entries = rows.data if rows.data.dtype in sources else np.asarray(rows.data, dtype)
        rising = len(starts) == rows.shape[0] + 1 and starts[0] >= 0 and (np.diff(starts) >= 0).all()
        if not rising or starts[-1] > min(len(columns), len(entries)):
            raise IndexError(f"the rows of a sparse input do not lie in its {len(entries)} entries")
        if columns.size and not 0 <= columns.min() <= columns.max() < rows.shape[1]:
            raise IndexError(f"a sparse input has entries outside its {rows.shape[1]} columns")
        return cls(*map(np.ascontiguousarray, (starts, columns, entries)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def addresses(self) -> list[int]:
        """Where the three arrays are."""
        return [array.ctypes.data for array in (self.starts, self.columns, self.entries)]

    def kind(self, sources: Mapping[np.dtype[Any], str]) -> str:
        """Return the types of entries and column numbers."""
        return f"{sources[self.entries.dtype]}{AT}{sources[self.columns.dtype]}"


def sparse_product_text(kind: str, laid_out: str) -> str:
    """Return the code of a step C ← sign · scale · A B + keep · C, where A, or what it is the transpose of, has sparse rows.

    Its arguments: the addresses of `SparseRows` · of the numbers of the batch's rows · how many these are · whether A is
    transposed · rows and columns of C · B · C · the address of the scale (a double) · sign · keep. A part is some of the
    columns of B and C. Sign and keep are whole numbers.
    """
    code = Code()
    at, order, b, c, scale = (code.argument(place, "ptr") for place in (0, 1, 6, 7, 8))
    count, transposed, height, width, sign, keep = map(code.argument, (2, 3, 4, 5, 9, 10))
    starts, columns, entries = (
        code.load(code.address(at.text, "ptr", literal(place, "i64")), "ptr").text for place in range(3)
    )
    factor = as_kind(code, code.load(scale.text, "double") * code.cast("sitofp", sign, "double"), kind)
    entry_type, _, column_type = laid_out.partition(AT)
    is_transposed = transposed.differs(0)
    with code.when(keep.equals(0)), code.loop(ZERO, height) as row:
        for place, mask in _vectors(code, kind):
            none = literal(0, kind, LANES[kind])
            code.store(none, code.address(c.text, kind, row * width + place), mask)
    with code.loop(ZERO, count) as number:
        row = code.load(code.address(order.text, "i64", number), "i64")
        first, last = (_read(code, starts, column_type, k, "i64") for k in (row, row + ONE))
        with code.loop(first, last) as entry:
            column = _read(code, columns, column_type, entry, "i64")
            value = code.splat(_read(code, entries, entry_type, entry, kind) * factor, LANES[kind])
            source = code.select(is_transposed, number, column) * width
            target = code.select(is_transposed, column, number) * width
            for place, mask in _vectors(code, kind):
                added = code.load(code.address(b.text, kind, source + place), kind, LANES[kind], mask)
                address = code.address(c.text, kind, target + place)
                total = code.load(address, kind, LANES[kind], mask)
                code.store(code.intrinsic("fmuladd", value, added, total), address, mask)
    return module(code.define())


def _vectors(code: Code, kind: str) -> Iterator[tuple[Number, Number | None]]:
    """Write what follows for vectors of the part's columns, then for the rest of them under a mask."""
    lanes, (first, last) = LANES[kind], code.part
    rest = (last - first) % lanes
    with code.loop(first, last - rest, lanes) as column:
        yield column, None
    with code.when(rest > ZERO):
        yield last - rest, code.lanes(lanes) < code.splat(rest, lanes)


def _read(code: Code, base: str, laid_out: str, index: Number, kind: str) -> Number:
    """Read a number of one type as another."""
    own, _, unsigned = laid_out.partition(" ")
    number = code.load(code.address(base, own, index), own)
    if own == kind or own in LANES:
        return as_kind(code, number, kind)
    operation = f"{'ui' if unsigned else 'si'}tofp" if kind in LANES else "zext" if unsigned else "sext"
    return code.cast(operation, number, kind)
