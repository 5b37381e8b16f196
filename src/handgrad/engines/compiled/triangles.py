"""Matrices of which one half is known beforehand: what a causal mask leaves out is neither computed nor read.

Behind ``np.where(np.tri(T) > 0, s, -np.inf)`` the entries above the diagonal are 0 after exp, and whatever multiplies them is
not needed there. Such values are computed in blocks of rows, each up to the last column that its rows have.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from handgrad.engines.compiled.elementwise import NEUTRAL
from handgrad.program.lowered import GIVEN, ONE, REDUCTIONS, VIEWS, LoweredValue

SMALLEST = 256
"""Matrices of fewer rows are computed whole: their blocks would be too small for BLAS."""

BLOCKS, UNIT = 8, 16
"""Into so many blocks of rows a matrix is divided, of a multiple of so many rows."""

NOT_ELEMENTWISE = GIVEN | VIEWS | REDUCTIONS | {
    "product", "take", "add_rows_at", "uniform", "is_class", "copy", "concatenate", "broadcast"
}  # fmt: skip


def block_size(rows: int) -> int:
    """Return how many rows a block has."""
    return -(-rows // (BLOCKS * UNIT)) * UNIT


def triangular(
    values: Iterable[LoweredValue],
    users: Mapping[LoweredValue, Collection[LoweredValue]],
    fixed: Collection[LoweredValue],
) -> frozenset[LoweredValue]:
    """Return the values that are computed at and below the diagonal only; ``fixed`` ones are not among them."""
    values = list(values)
    above: dict[LoweredValue, float] = {}
    for value in values:
        known = _above(value, above)
        if known is not None:
            above[value] = known
    if not above:
        return frozenset()
    found = set(above)
    for value in reversed(values):  # of others nothing is needed above the diagonal, if their users are such
        if (
            _is_square(value)
            and users[value]
            and all(_is_elementwise(u) and u in found for u in users[value])
        ):
            found.add(value)

    def ignores(user: LoweredValue, value: LoweredValue) -> bool:
        """Whether a user does without what is above the diagonal."""
        if user in fixed:
            return False
        if user.operation in REDUCTIONS:
            is_along_rows = user.attribute == (len(value.shape) - 1,)
            return is_along_rows and above.get(value) == NEUTRAL[user.operation]
        if user.operation == "transpose":
            axes = tuple(range(len(value.shape)))
            is_swapped = user.attribute == (*axes[:-2], axes[-1], axes[-2])
            return is_swapped and above.get(value) == 0 and all(_is_left(user, u) for u in users[user])
        if user.operation == "product":
            return above.get(value) == 0 and _is_left(value, user)
        return user in found and user.shape == value.shape

    while removed := {
        value
        for value in found
        if value in fixed
        or not (_is_elementwise(value) or (value.operation == "product" and _has_same_stacks(value)))
        or not all(ignores(user, value) for user in users[value])
    }:
        found -= removed
    return frozenset(found)


def sums_triangle(value: LoweredValue, triangles: Collection[LoweredValue]) -> bool:
    """Whether a value is computed in a loop over triangles: one itself, or a sum over the rows of one."""
    return value in triangles or (value.operation in REDUCTIONS and value.inputs[0] in triangles)


def pieces(
    value: LoweredValue, triangles: Collection[LoweredValue]
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] | None:
    """Return the products that a product of triangles is made of, or None: rows, columns and inner indices of each.

    Examples
    --------
    A whole one has all rows, all columns, all inner indices; of one whose result is a triangle, the second half of the
    rows has all columns, and the first half has half of them.
    """
    left = value.inputs[0]
    is_transposed = left.operation == "transpose" and left.inputs[0] in triangles
    if value not in triangles and left not in triangles and not is_transposed:
        return None
    m, k, n = left.shape[-2].factor, left.shape[-1].factor, value.shape[-1].factor
    block = block_size(m)
    rows = ((first, min(first + block, m)) for first in range(0, m, block))
    if value in triangles:
        return (((first, last), (0, last), (0, k)) for first, last in rows)
    if is_transposed:
        return (((first, last), (0, n), (first, k)) for first, last in rows)
    return (((first, last), (0, n), (0, last)) for first, last in rows)


def _above(value: LoweredValue, above: Mapping[LoweredValue, float]) -> float | None:
    """Return the number above the diagonal, where there is one everywhere."""
    if not _is_square(value):
        return None
    first = above.get(value.inputs[0]) if value.inputs else None
    match value.operation:
        case "where":
            mask, _, fill = value.inputs
            if _is_causal(mask) and fill.operation == "constant" and fill.attribute in (0.0, -math.inf):
                return float(fill.attribute)
        case "subtract" | "add" if first == -math.inf and value.inputs[1].shape[-1:] == (ONE,):
            return first
        case "exp" if first == -math.inf:
            return 0.0
        case "multiply" if any(above.get(v) == 0 and v.shape == value.shape for v in value.inputs):
            return 0.0
        case "divide" | "negative" if first == 0:
            return 0.0
    return None


def _is_causal(mask: LoweredValue) -> bool:
    return mask.operation == "table" and np.array_equal(mask.attribute, np.tri(len(mask.attribute)) > 0)


def _is_square(value: LoweredValue) -> bool:
    shape = value.shape
    return len(shape) > 1 and shape[-1] == shape[-2] and not shape[-1].rows and shape[-1].factor >= SMALLEST


def _is_elementwise(value: LoweredValue) -> bool:
    return value.operation not in NOT_ELEMENTWISE and not value.target


def _is_left(value: LoweredValue, product: LoweredValue) -> bool:
    """Whether a value is the left operand of a product of stacks of equally many matrices, and nothing else of it."""
    is_left = product.operation == "product" and product.inputs[0] is value and product.inputs[1] is not value
    return is_left and _has_same_stacks(product)


def _has_same_stacks(product: LoweredValue) -> bool:
    left, right = product.inputs
    return len(right.shape) > 1 and left.shape[:-2] == right.shape[:-2]
