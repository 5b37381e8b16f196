"""Where results are written: into memory of their own, or straight to where they would only be copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from handgrad.program.lowered import NONE, ONE, VIEWS, Extent, Extents, LoweredValue, View, contiguous

Homes = dict[LoweredValue, View]


def homes_of(
    values: Iterable[LoweredValue],
    users: Mapping[LoweredValue, Collection[LoweredValue]],
    fixed: Collection[LoweredValue],
) -> tuple[Homes, dict[LoweredValue, LoweredValue]]:
    """Return where values are written whose home is other memory than their own, and whose result each copy is then.

    Parts are written into the whole that they are concatenated to, or into an array that a loop fills; what is only
    copied, into its copy. ``fixed`` values stay where they are.
    """
    homes: Homes = {}
    copied: dict[LoweredValue, LoweredValue] = {}

    def home(value: LoweredValue) -> View:
        return homes.get(value) or View(value, NONE, contiguous(value.shape))

    for value in reversed(list(values)):
        if value in fixed:
            continue
        if isinstance(value.attribute, View):
            homes[value] = value.attribute
        elif value.operation == "copy" and value.attribute is not None:
            axis, start, _ = value.attribute
            (whole,) = users[value]
            place = home(whole)
            strides = (
                NONE if size == ONE else stride
                for size, stride in zip(value.shape, place.strides, strict=True)
            )
            homes[value] = View(place.base, place.offset + start * place.strides[axis], tuple(strides))
        if value.operation in ("product", "concatenate"):
            copy = _only_copy(value, users)
            if copy is None or copy in fixed:
                continue
            found = _permuted(value, copy, home(copy))
            if found is not None:
                homes[value], copied[copy] = found, value
    return homes, copied


def _only_copy(
    value: LoweredValue, users: Mapping[LoweredValue, Collection[LoweredValue]]
) -> LoweredValue | None:
    """Return the copy that is all that a value is used for, or None."""
    while len(users[value]) == 1:
        (value,) = users[value]
        if value.operation == "copy":
            return value
        if value.operation not in VIEWS:
            return None
    return None


def _permuted(value: LoweredValue, copy: LoweredValue, place: View) -> View | None:
    """Return where the elements of a value are in its copy, or None where an axis is divided or joined there."""
    seen = copy.inputs[0]
    if seen.size != value.size:
        return None
    axes = dict(zip(zip(seen.shape, seen.view.strides, strict=True), place.strides, strict=True))
    strides = []
    for axis in zip(value.shape, contiguous(value.shape), strict=True):
        if axis[0] != ONE and axis not in axes:
            return None
        strides.append(NONE if axis[0] == ONE else axes[axis])
    if strides and value.shape[-1] != ONE and strides[-1] != ONE:
        return None  # rows are written as a whole
    return replace(place, strides=tuple(strides))


@dataclass(frozen=True)
class Stack:
    """A product as calls of BLAS, one for each place of a stack.

    ``sizes`` are rows, columns and inner size; ``views`` of A, B and C where the first matrix of each is, ``leading`` the
    lengths of their rows, ``axes`` of each axis of the stack its size and how far apart matrices of A, B and C are along
    it, the last one first.
    """

    sizes: tuple[Extent, Extent, Extent]
    views: tuple[View, View, View]
    transposed: tuple[bool, bool]
    leading: tuple[Extent, Extent, Extent]
    axes: tuple[tuple[Extent, Extent, Extent, Extent], ...]


def stacked(value: LoweredValue, home: View) -> Stack:
    """Return a product as calls of BLAS; leading axes become rows of one matrix where memory allows it."""
    left, right = value.inputs
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1] if len(right.shape) > 1 else ONE
    strides = [left.view.strides, right.view.strides, home.strides]
    if len(right.shape) == 1:
        strides[1], strides[2] = (*strides[1], NONE), (*strides[2], NONE)
    layouts = [_layout(strides[0][-2:], m, k), _layout(strides[1][-2:], k, n), _layout(strides[2][-2:], m, n)]
    depth = max(len(each) for each in strides) - 2
    aligned = [(NONE,) * (depth + 2 - len(each)) + each for each in strides]
    sizes = value.shape[:depth]
    axes = [axis for axis in zip(sizes, *aligned, strict=False) if axis[0] != ONE]
    (a_transposed, lda), _, (_, ldc) = layouts
    while axes and not a_transposed and axes[-1][1:] == (m * lda, NONE, m * ldc):
        m = m * axes.pop()[0]
    for place in range(len(axes) - 1, 0, -1):  # axes that are one in memory are one
        (size, *outer), (inner_size, *inner) = axes[place - 1], axes[place]
        if all(far == inner_size * near for far, near in zip(outer, inner, strict=True)):
            axes[place - 1 : place + 1] = [(size * inner_size, *inner)]
    transposed, leading = zip(*layouts, strict=True)
    return Stack((m, n, k), (left.view, right.view, home), transposed[:2], leading, tuple(reversed(axes)))


def _layout(strides: Extents, rows: Extent, columns: Extent) -> tuple[bool, Extent]:
    """Return whether a matrix has contiguous columns instead of rows, and how far apart its rows (or columns) are."""
    between, within = strides
    if within == ONE or columns == ONE:
        return False, columns if rows == ONE else between
    return True, within
