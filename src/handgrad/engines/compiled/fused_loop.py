"""A loop that computes several values together, and which others may join it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from handgrad.engines.compiled.loop_fits import Fit, Level, fits, is_written
from handgrad.engines.compiled.triangles import sums_triangle
from handgrad.program.lowered import ONE, REDUCTIONS, Extent, LoweredValue, View, product

Direction: TypeAlias = Literal["rows", "columns", "not"]

SPECIAL = frozenset({
    "take", "add_rows_at", "uniform", "is_class", "copy", "concatenate", "windows", "add_windows", "first_largest",
    "block_diagonal", "diagonal_blocks",
})  # fmt: skip
"""Operations whose place in a loop is fixed."""


@dataclass(eq=False)
class FusedLoop:
    """Values computed together, row by row, in order, each at its level.

    ``repeated`` are the cheap ones, ``homes`` where values are written that have no memory of their own. Rows of
    ``triangles`` end behind the diagonal.
    """

    rows: Extent
    columns: Extent
    repeated: frozenset[LoweredValue] = frozenset()
    homes: Mapping[LoweredValue, View] = field(default_factory=dict)
    triangles: frozenset[LoweredValue] = frozenset()
    values: list[LoweredValue] = field(default_factory=list)
    levels: dict[LoweredValue, Level] = field(default_factory=dict)
    fits: dict[LoweredValue, Fit] = field(default_factory=dict)

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        for value in self.values:
            yield from (operand.source for operand in value.inputs if operand.source not in self.levels)

    def add(self, value: LoweredValue, fit: Fit) -> set[LoweredValue]:
        """Compute a value here, after whatever cheap operands it has; return what the loop reads or computes for it."""
        touched = {value}
        for operand in value.inputs:
            if operand.source in self.repeated and operand.source not in self.levels:
                touched |= self.add(operand.source, next(self.fits_in_size(operand.source)))
            touched.add(operand.source)
        self.values.append(value)
        self.levels[value], self.fits[value] = fit.level, fit
        return touched

    def fit(self, value: LoweredValue) -> Fit | None:
        """Return how a value would be computed in this loop, or None when it cannot be."""
        own = (fit for fit in self.own_fits(value) if self.has_ready(value, fit))
        return next(own, None) or self.fit_in_row(value)

    def own_fits(self, value: LoweredValue) -> Iterator[Fit]:
        if sums_triangle(value, self.triangles) != self.is_of_triangles:
            return iter(())
        return self.fits_in_size(value)

    def fits_in_size(self, value: LoweredValue) -> Iterator[Fit]:
        possible = possible_fits(value, self.homes)
        return (fit for fit in possible if (fit.rows, fit.columns) == (self.rows, self.columns))

    @property
    def is_of_triangles(self) -> bool:
        """Whether its rows end behind the diagonal."""
        first = next((value for value in self.values if value not in self.repeated), None)
        return first is not None and sums_triangle(first, self.triangles)

    def fit_in_row(self, value: LoweredValue) -> Fit | None:
        """Return how a value of one number a row would be computed at the end of each row."""
        is_reduction = value.operation in REDUCTIONS
        sizes = [operand.source.size for operand in value.inputs]
        if (
            value.operation in SPECIAL
            or self.rows == ONE
            or not self.rows.rows
            or product(value.inputs[0].shape if is_reduction else value.shape) != self.rows
            or not any(self.levels.get(v.source) == "row" for v in value.inputs)
            or (is_reduction and product(value.shape) != ONE)
            or any(size not in (self.rows, ONE) for size in sizes)
            or not all(v.is_contiguous for v in value.inputs)
        ):
            return None
        operands: tuple[Level, ...] = tuple("row" if size == self.rows else "scalar" for size in sizes)
        level: Level = "scalar" if is_reduction else "row"
        fit = Fit(self.rows, self.columns, level, operands, (None,) * len(operands))
        return fit if self.has_ready(value, fit) else None

    def has_ready(self, value: LoweredValue, fit: Fit) -> bool:
        """Whether each operand that this loop computes is complete where the value needs it, and as it needs it."""
        for operand, level, access in zip(value.inputs, fit.operands, fit.accesses, strict=True):
            made = operand.source
            if made in self.repeated and level != "full":
                return False
            complete = access is None and level in ("full", "row") and self.levels.get(made) == level
            if made in self.levels and not complete:
                return False
        return not (value.target and any(self.is_row_reduction(v) for v in self.values))

    def is_row_reduction(self, value: LoweredValue) -> bool:
        return value.operation in REDUCTIONS and self.levels[value] == "row"

    def sums_columns(self, value: LoweredValue) -> bool:
        """Whether a reduction goes over the columns of each row."""
        return "full" in self.fits[value].operands

    @property
    def passes(self) -> dict[LoweredValue, int]:
        """In which pass over the columns of a row each value is computed; a row's own values come before it."""
        passes: dict[LoweredValue, int] = {}
        for value in self.values:
            made = [operand.source for operand in value.inputs if operand.source in passes]
            before = (passes[v] + (self.is_row_reduction(v) and self.sums_columns(v)) for v in made)
            passes[value] = max(before, default=0)
        return passes

    @property
    def carried(self) -> set[LoweredValue]:
        """What one pass computes and a later one reads: it goes through memory."""
        passes = self.passes
        return {
            operand.source
            for value in self.values
            for operand in value.inputs
            if operand.source not in self.repeated
            and self.levels.get(operand.source) == "full"
            and passes[operand.source] < passes[value]
        }

    @property
    def has_only_numbers(self) -> bool:
        """Whether nothing in it has rows or columns."""
        return all(level == "scalar" and v.operation not in REDUCTIONS for v, level in self.levels.items())

    @property
    def direction(self) -> Direction:
        """Along what it may be divided without changing the order of any sum."""
        levels = {self.levels[v] for v in self.values if v.operation in {*REDUCTIONS, "add_rows_at"}}
        of_one_row = self.rows == ONE and "row" in levels
        sums_rows = "column" in levels or "group" in levels
        if "scalar" in levels or ("row" in levels and sums_rows) or of_one_row or self.has_only_numbers:
            return "not"
        return "columns" if sums_rows or self.rows == ONE else "rows"


def possible_fits(value: LoweredValue, homes: Mapping[LoweredValue, View]) -> Iterator[Fit]:
    """Yield the loops that can compute a value and write it to its home."""
    home = homes.get(value)
    return (fit for fit in fits(value) if home is None or is_written(home, value.shape, fit.split))
