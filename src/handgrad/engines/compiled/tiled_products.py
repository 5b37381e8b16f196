"""Products of sequences with a matrix, without BLAS: a tile of the result is summed in registers, as a convolution's is.

BLAS packs both matrices first; where all of one stays in a cache, that is not needed. Which products are done so follows from
their sizes alone, and nothing is measured: the two ways round differently. A block of rows is a piece, so that the code is
the same for every number of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handgrad.engines.compiled.blas import library_is_chosen
from handgrad.engines.compiled.contractions import Contraction, ImageContractions, StridedLoop
from handgrad.engines.compiled.ir import BYTES, LANES
from handgrad.engines.compiled.placement import Stack
from handgrad.program.lowered import LoweredValue

MOST_BYTES = 1 << 20
"""How large a matrix may be that stays in a cache meanwhile; …"""

FEWEST = 200_000
"""… and so many multiplications are worth code of their own."""

TIMES = 16
"""A sequence is so long at least: shorter ones, and rows of features, are BLAS's."""

BLOCKS = (256, 128, 64, 32)
"""Of so many rows a piece is, in a sum over them: the largest that divides them."""

ROWS = 64
"""Of so many rows a piece of the result is."""


@dataclass(frozen=True)
class Piece:
    """Contractions for so many blocks of rows, and where the first begins in A and C."""

    contractions: ImageContractions
    blocks: int
    start: tuple[int, int] = (0, 0)


def is_of_sequences(value: LoweredValue) -> bool:
    """Whether a product has a row for each time of sequences, or is a sum over those."""
    left, right = value.inputs
    rows = left.size.factor // left.shape[-1].factor
    counted = left.shape[-1] if left.shape[-1].rows else left.size
    long = (left.shape[-1].factor if left.shape[-1].rows else rows) >= TIMES
    return counted.rows and long and len(right.shape) == 2


def tiled(stack: Stack, n: int, kind: str) -> list[Piece] | None:
    """Return a product in pieces, or None where it is not done so."""
    (m, columns, k), (lda, ldb, ldc) = (
        [size.at(n) for size in sizes] for sizes in (stack.sizes, stack.leading)
    )
    kept = (m if stack.transposed[0] else k) * columns * BYTES[kind]
    small = kept > MOST_BYTES or m * columns * k < FEWEST or columns < LANES[kind]
    if stack.axes or small or library_is_chosen():
        return None
    if stack.transposed[0]:
        size = next((size for size in BLOCKS if k % size == 0), 0)
        if stack.transposed[1] or not size:
            return None
        sums = Contraction((StridedLoop(m, 1, 0, ldc),), (StridedLoop(size, lda, ldb),), columns)
        return [Piece(ImageContractions((sums,), (size * lda, size * ldb, 0)), k // size)]
    if not stack.transposed[1]:
        return list(_rows(m, columns, k, (lda, ldb, ldc)))
    turned = StridedLoop(columns, ldb, 0, 1), StridedLoop(k, 1, 0, columns)
    return list(_rows(m, columns, k, (lda, columns, ldc), turned))


def _rows(
    m: int, columns: int, k: int, leading: tuple[int, int, int], copied: tuple[StridedLoop, ...] = ()
) -> Iterator[Piece]:
    lda, ldb, ldc = leading
    for rows, blocks, first in (
        (min(m, ROWS), m // min(m, ROWS), 0),
        (m % min(m, ROWS), 1, m - m % min(m, ROWS)),
    ):
        if rows:
            contraction = Contraction((StridedLoop(rows, lda, 0, ldc),), (StridedLoop(k, 1, ldb),), columns)
            each = ImageContractions((contraction,), (rows * lda, 0, rows * ldc), None, copied)
            yield Piece(each, blocks, (first * lda, first * ldc))
