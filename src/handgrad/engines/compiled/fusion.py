"""Fused loops: which neighbouring values one loop over rows and columns can compute together.

Each value of a loop is at one of four levels: one for every place (``full``), one for every row, one for every column,
or a single one (``scalar``). A value joins the loop that computed its operands when the rows and columns agree and
nothing it needs is still incomplete there: a sum over columns is complete at the end of its row, a sum over rows only
at the end of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from handgrad.program.lowered import ONE, REDUCTIONS, Extent, Extents, LoweredValue, product

Level: TypeAlias = Literal["full", "row", "column", "scalar"]
Direction: TypeAlias = Literal["rows", "columns", "not"]


@dataclass(frozen=True)
class Fit:
    """One way to compute a value in a loop: the loop's size, and the level of the result and of each operand."""

    rows: Extent
    columns: Extent
    level: Level
    operands: tuple[Level, ...]


SPECIAL = frozenset({"take", "add_rows_at", "uniform", "is_class"})
"""Operations whose place in a loop is fixed."""

CHEAP = frozenset({"broadcast", "is_class"})
"""Operations that each loop does again where it needs their result, unless a product needs it in memory."""


@dataclass(eq=False)
class FusedLoop:
    """Values computed together, row by row, in order, each at its level.

    ``repeated`` are so cheap that it computes them itself rather than read them from memory.
    """

    rows: Extent
    columns: Extent
    repeated: frozenset[LoweredValue] = frozenset()
    values: list[LoweredValue] = field(default_factory=list)
    levels: dict[LoweredValue, Level] = field(default_factory=dict)
    fits: dict[LoweredValue, Fit] = field(default_factory=dict)

    @property
    def reads(self) -> Iterator[LoweredValue]:
        """What it takes from memory."""
        for value in self.values:
            yield from (operand.source for operand in value.inputs if operand.source not in self.levels)

    def add(self, value: LoweredValue, fit: Fit) -> None:
        """Compute a value here, after whatever cheap operands it has."""
        for operand in value.inputs:
            if operand.source in self.repeated and operand.source not in self.levels:
                self.add(operand.source, next(self.own_fits(operand.source)))
        self.values.append(value)
        self.levels[value], self.fits[value] = fit.level, fit

    def fit(self, value: LoweredValue) -> Fit | None:
        """Return how a value would be computed in this loop, or None when it cannot be."""
        own = (fit for fit in self.own_fits(value) if self.has_ready(value, fit))
        return next(own, None) or self.fit_in_row(value)

    def own_fits(self, value: LoweredValue) -> Iterator[Fit]:
        """Yield how a value would be computed in a loop of this size."""
        return (fit for fit in fits(value) if (fit.rows, fit.columns) == (self.rows, self.columns))

    def fit_in_row(self, value: LoweredValue) -> Fit | None:
        """Return how a value of one number a row would be computed at the end of each row."""
        if not (value.operation not in SPECIAL and self.rows != ONE and self.rows.rows):
            return None
        full = value.inputs[0].shape if value.operation in REDUCTIONS else value.shape
        if product(full) != self.rows or not any(self.levels.get(v.source) == "row" for v in value.inputs):
            return None
        if value.operation in REDUCTIONS and product(value.shape) != ONE:
            return None
        if any(v.source.size not in (self.rows, ONE) for v in value.inputs):
            return None
        operands: tuple[Level, ...] = tuple(
            "row" if v.source.size == self.rows else "scalar" for v in value.inputs
        )
        fit = Fit(self.rows, self.columns, "scalar" if value.operation in REDUCTIONS else "row", operands)
        return fit if self.has_ready(value, fit) else None

    def has_ready(self, value: LoweredValue, fit: Fit) -> bool:
        """Whether each operand that this loop computes is complete where the value needs it, and as it needs it."""
        for operand, level in zip(value.inputs, fit.operands, strict=True):
            made = operand.source
            if made in self.repeated and level != "full":
                return False
            if made in self.levels and not (self.levels[made] == level and level in ("full", "row")):
                return False
        return not (value.target and any(self.is_row_reduction(v) for v in self.values))

    def is_row_reduction(self, value: LoweredValue) -> bool:
        return value.operation in REDUCTIONS and self.levels[value] == "row"

    # in which order it does its work: passes over the columns of a row

    def sums_columns(self, value: LoweredValue) -> bool:
        """Whether a reduction goes over the columns of each row."""
        return "full" in self.fits[value].operands

    @property
    def passes(self) -> dict[LoweredValue, int]:
        """In which pass over the columns each value is computed; a row's own values come before it."""
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
        if "scalar" in levels or {"row", "column"} <= levels or of_one_row or self.has_only_numbers:
            return "not"
        return "columns" if "column" in levels or self.rows == ONE else "rows"


def fits(value: LoweredValue) -> Iterator[Fit]:
    """Yield the loops a value can be computed in, the most natural one first."""
    shape = value.inputs[0].shape if value.operation in REDUCTIONS else value.shape
    match value.operation:
        case "add_rows_at":
            shape = value.inputs[0].shape
            yield _fit(shape, len(shape) - 1, "column", ("full", "row"))
        case "take":
            yield _fit(shape, len(value.inputs[1].shape), "full", ("column", "row"))
        case "is_class":
            yield _fit(shape, len(shape) - 1, "full", ("row",))
        case "uniform":
            for split in _splits(shape):
                yield _fit(shape, split, "full", ("scalar",) * 3)
        case _:
            for split in _splits(shape):
                levels = tuple(_level(operand, shape, split) for operand in value.inputs)
                result: Level | None = "full" if shape else "scalar"
                if value.operation in REDUCTIONS:
                    result = _reduced(value.attribute, len(shape), split)
                if result is not None and None not in levels:
                    yield _fit(shape, split, result, levels)  # type: ignore[arg-type]


def _fit(shape: Extents, split: int, level: Level, operands: tuple[Level, ...]) -> Fit:
    return Fit(product(shape[:split]), product(shape[split:]), level, operands)


def _splits(shape: Extents) -> Iterator[int]:
    """Yield where the axes may be divided into rows and columns, the natural place first.

    What has no rows of a batch is one long row; everything else is rows of its last axis.
    """
    first = max(len(shape) - 1, 0) if product(shape).rows and len(shape) > 1 else 0
    yield first
    yield from (split for split in range(len(shape), -1, -1) if split != first)


def _level(operand: LoweredValue, whole: Extents, split: int) -> Level | None:
    """Return at which level an operand is in a loop over ``whole``, or None."""
    shape = operand.source.shape if operand.source is not operand.base else operand.shape
    if shape == whole and whole:
        return "full"
    if all(size == ONE for size in shape):
        return "scalar"
    aligned = (ONE,) * (len(whole) - len(shape)) + shape
    rows, columns = aligned[:split], aligned[split:]
    if columns == whole[split:] and all(size == ONE for size in rows):
        return "column"
    if rows == whole[:split] and all(size == ONE for size in columns):
        return "row"
    return None


def _reduced(along: tuple[int, ...], axes: int, split: int) -> Level | None:
    """Return at which level a reduction along these axes leaves its result, or None."""
    if along == tuple(range(axes)):
        return "scalar"
    if along == tuple(range(split, axes)):
        return "row"
    return "column" if along == tuple(range(split)) else None
