"""How a value can be computed in a loop over rows and columns: into which its axes are divided, and where its operands are.

Each value and operand is at one of four levels: one for every place (``full``), one for every row, one for every column,
or a single one (``scalar``). Axes that are neither all rows nor all columns of an operand, or not one after the other in
memory, are read through an `Access`: a loop over the places of all sequences adds the positions of one, a loop over
heads reads them out of the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handgrad.program.lowered import (
    NONE,
    ONE,
    REDUCTIONS,
    Extent,
    Extents,
    LoweredValue,
    View,
    contiguous,
    product,
)

Level: TypeAlias = Literal["full", "row", "column", "scalar", "group"]
"""``group`` is the level of a sum over some of the rows: one for every column of each group of them."""


@dataclass(frozen=True)
class Access:
    """Where rows and columns of a loop are in memory, when not simply one after the other.

    Of row r, ``rows`` has the size and the stride of each axis that it counts, the last one first; all of them begin at
    ``offset``, and columns are ``step`` apart.
    """

    offset: Extent
    rows: tuple[tuple[Extent, Extent], ...]
    step: Extent


@dataclass(frozen=True)
class Fit:
    """One way to compute a value in a loop: the loop's size, and the level of the result and of each operand.

    ``accesses`` says of each operand where it is, None where it simply follows from its level; ``result`` the same of the
    result. ``split`` is how many of the axes are rows.
    """

    rows: Extent
    columns: Extent
    level: Level
    operands: tuple[Level, ...]
    accesses: tuple[Access | None, ...]
    split: int = 0
    result: Access | None = None


def fits(value: LoweredValue) -> Iterator[Fit]:
    """Yield the loops a value can be computed in, the most natural one first."""
    shape = value.inputs[0].shape if value.operation in {*REDUCTIONS, "add_rows_at"} else value.shape
    level: Level = "full" if shape else "scalar"
    fixed: tuple[Level, ...] = ()
    splits = _splits(shape)
    match value.operation:
        case "copy" if shape:
            splits.sort(key=lambda split: split != len(shape) - 1)
        case "add_rows_at":
            splits, level, fixed = [len(shape) - 1], "column", ("full", "row")
        case "take":
            splits, fixed = [len(value.inputs[1].shape)], ("column", "row")
        case "is_class":
            splits, fixed = [len(shape) - 1], ("row",)
        case "uniform":
            fixed = ("scalar",) * 3
    if fixed:
        for split in splits:
            sizes = product(shape[:split]), product(shape[split:])
            yield Fit(*sizes, level, fixed, (None,) * len(fixed), split)
        return
    found = [fit for split in splits if (fit := _fit(value, shape, level, split)) is not None]
    # a sum over axes that may be columns is none over groups of rows
    first = [fit for fit in found[:1] if fit.split == splits[0] and fit.level != "group"]
    rest = found[len(first) :]
    yield from first
    yield from (fit for fit in rest if _is_plain(fit))
    yield from (fit for fit in rest if not _is_plain(fit))


def _is_plain(fit: Fit) -> bool:
    return fit.result is None and not any(fit.accesses)


def _fit(value: LoweredValue, shape: Extents, level: Level, split: int) -> Fit | None:
    placed = [_placed(operand, shape, split) for operand in value.inputs]
    operands = [pair for pair in placed if pair is not None]
    if len(operands) < len(placed):
        return None
    result = None
    if value.operation in REDUCTIONS:
        reduced = _reduced(value, shape, split)
        if reduced is None:
            return None
        level, result = reduced
    levels, accesses = zip(*operands, strict=True) if operands else ((), ())
    return Fit(product(shape[:split]), product(shape[split:]), level, levels, accesses, split, result)


def _splits(shape: Extents) -> list[int]:
    """Return where the axes may be divided into rows and columns, the natural place first."""
    first = max(len(shape) - 1, 0) if product(shape).rows and len(shape) > 1 else 0
    return [first, *(split for split in range(len(shape), -1, -1) if split != first)]


def _placed(operand: LoweredValue, whole: Extents, split: int) -> tuple[Level, Access | None] | None:
    """Return at which level an operand is in a loop over ``whole``, and how it is read, or None."""
    if operand.source is not operand.base:
        return "scalar", None
    if operand.is_contiguous and (level := _level(operand.shape, whole, split)):
        return level, None
    access = access_of(operand.view, operand.shape, whole, split)
    if access is None:
        return None
    if operand.shape == whole:
        return "full", access
    has_rows, has_columns = any(stride != NONE for _, stride in access.rows), access.step != NONE
    levels: dict[tuple[bool, bool], Level] = {
        (True, True): "full", (True, False): "row", (False, True): "column", (False, False): "scalar",
    }  # fmt: skip
    return levels[has_rows, has_columns], access


def _level(shape: Extents, whole: Extents, split: int) -> Level | None:
    """Return at which level contiguous elements are in a loop over ``whole``, or None."""
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


def access_of(view: View, shape: Extents, whole: Extents, split: int) -> Access | None:
    """Return how a loop over ``whole`` reads what is seen in a shape, or None where columns are several axes."""
    strides = (NONE,) * (len(whole) - len(shape)) + view.strides
    columns = _merged(whole[split:], strides[split:])
    if len(columns) > 1:
        return None
    return Access(view.offset, _merged(whole[:split], strides[:split]), columns[0][1] if columns else ONE)


def is_written(home: View, shape: Extents, split: int) -> bool:
    """Whether a loop can write what is seen in a shape: columns are one after the other."""
    access = access_of(home, shape, shape, split)
    return access is not None and access.step == ONE


def _merged(sizes: Extents, strides: Extents) -> tuple[tuple[Extent, Extent], ...]:
    """Return sizes and strides, the last axis first; axes that are one in memory are one."""
    found: list[tuple[Extent, Extent]] = []
    for size, stride in reversed([*zip(sizes, strides, strict=True)]):
        if size == ONE:
            continue
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = found[-1][0] * size, found[-1][1]
        else:
            found.append((size, stride))
    return tuple(found)


def _reduced(value: LoweredValue, shape: Extents, split: int) -> tuple[Level, Access | None] | None:
    """Return at which level a reduction leaves its result, and where, or None."""
    along, axes = value.attribute, len(shape)
    levels: dict[tuple[int, ...], Level] = {
        tuple(range(split)): "column", tuple(range(split, axes)): "row", tuple(range(axes)): "scalar",
    }  # fmt: skip
    if along in levels:
        return levels[along], None
    if any(axis >= split for axis in along):
        return None
    kept = tuple(ONE if axis in along else size for axis, size in enumerate(shape))
    access = access_of(View(value, NONE, contiguous(kept)), kept, shape, split)
    return ("group", access) if access is not None else None
