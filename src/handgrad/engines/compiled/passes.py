"""In which order a loop does its work: passes over the columns of a row, and along what it may be divided."""

from __future__ import annotations

from typing import Literal, TypeAlias

from handgrad.engines.compiled.scheduling import Loop
from handgrad.program.lowered import ONE, REDUCTIONS, LoweredValue

Direction: TypeAlias = Literal["rows", "columns", "not"]


def sums_columns(loop: Loop, value: LoweredValue) -> bool:
    """Whether a reduction goes over the columns of each row."""
    return "full" in loop.fits[value].operands


def passes_of(loop: Loop) -> dict[LoweredValue, int]:
    """Return in which pass over the columns each value is computed; a row's own values stand before it."""
    passes: dict[LoweredValue, int] = {}
    for value in loop.values:
        before = [0]
        for made in (operand.source for operand in value.inputs):
            if made in passes:
                is_row_total = made.operation in REDUCTIONS and loop.levels[made] == "row"
                before.append(passes[made] + (is_row_total and sums_columns(loop, made)))
        passes[value] = max(before)
    return passes


def carried_between(loop: Loop, passes: dict[LoweredValue, int]) -> set[LoweredValue]:
    """Return what one pass computes and a later one reads: it goes through memory."""
    return {
        operand.source
        for value in loop.values
        for operand in value.inputs
        if operand.source not in loop.repeated
        and loop.levels.get(operand.source) == "full"
        and passes[operand.source] < passes[value]
    }


def has_only_numbers(loop: Loop) -> bool:
    """Whether nothing in a loop has rows or columns."""
    return all(level == "scalar" and v.operation not in REDUCTIONS for v, level in loop.levels.items())


def direction_of(loop: Loop) -> Direction:
    """Return along what a loop may be divided without changing the order of any sum."""
    levels = {loop.levels[v] for v in loop.values if v.operation in {*REDUCTIONS, "add_rows_at"}}
    of_one_row = loop.rows == ONE and "row" in levels
    if "scalar" in levels or {"row", "column"} <= levels or of_one_row or has_only_numbers(loop):
        return "not"
    return "columns" if "column" in levels or loop.rows == ONE else "rows"
