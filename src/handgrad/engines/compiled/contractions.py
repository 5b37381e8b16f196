"""Products of windows that are read where they are: convolution, its gradients, transposed convolution.

Each is ``result[t, o] = Σ_c source[t + c] · matrix[c, o]``, where t and c go through loops whose entries are a fixed distance
apart in all three arrays; or, column by column, ``result[t, o] = Σ_c source[t + c + o] · matrix[c, o]``. A convolution's
t are the places of its windows, its c the entries of one. For dW it is the other way round, and for dx the windows are those
of dz, of which a stride skips some.

Some t's and o's are summed in registers together: each number of ``source`` and each vector of ``matrix`` that is read
serves several sums. An image with padding is first copied with zeros around it, one at a time, into memory that caches hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache

from handgrad.engines.compiled.ir import BYTES, LANES, ZERO, Code, Number, literal, module
from handgrad.engines.compiled.native import native


@dataclass(frozen=True)
class StridedLoop:
    """How often a loop goes round, and how far apart its entries are in the source, the matrix and the result."""

    count: int
    source: int = 0
    matrix: int = 0
    result: int = 0

    @property
    def steps(self) -> tuple[int, int, int]:
        return self.source, self.matrix, self.result

    def merged(self, inner: StridedLoop) -> StridedLoop | None:
        """Return one loop that does the same as this one around another, or None."""
        if self.count == 1 or self.steps == tuple(inner.count * step for step in inner.steps):
            return StridedLoop(self.count * inner.count, inner.source, inner.matrix, inner.result)
        return self if inner.count == 1 else None


def merged(loops: Iterable[StridedLoop]) -> tuple[StridedLoop, ...]:
    """Return as few loops as do the same."""
    result: list[StridedLoop] = []
    for loop in loops:
        together = result[-1].merged(loop) if result else None
        result[-1:] = [together] if together else [*result[-1:], loop]
    return tuple(result)


@dataclass(frozen=True)
class Padding:
    """An image of rows of numbers with zeros around it: rows above and below, numbers left and right in each row."""

    rows: int
    row: int
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def length(self) -> int:
        """How long a row is with its zeros."""
        return self.before[1] + self.row + self.after[1]

    @property
    def size(self) -> int:
        return (self.before[0] + self.rows + self.after[0]) * self.length


@dataclass(frozen=True)
class Contraction:
    """One sum for each entry of the loops ``over``, along the loops ``along``; ``start`` is where each array begins.

    The result has ``columns`` neighbours for each of its entries, and so does the matrix, in which the last loop over the
    result does not move. Entries that ``overlap`` in the
    result are added up there. ``by_column``: each column of the result reads one of the source.
    """

    over: tuple[StridedLoop, ...]
    along: tuple[StridedLoop, ...]
    columns: int
    start: tuple[int, int, int] = (0, 0, 0)
    overlap: bool = False
    by_column: bool = False


@dataclass(frozen=True)
class Tile:
    """How many vectors of the columns, and how many entries of the last two loops, are summed at the same time."""

    width: int
    vectors: int
    last: int
    outer: int = 1

    @classmethod
    def of(cls, contraction: Contraction, kind: str) -> Tile:
        """Return the one with the least work: in half cycles, two products or two reads at a time."""
        width = min(LANES[kind], 1 << (contraction.columns - 1).bit_length())
        blocks = -(-contraction.columns // width)
        *around, last = contraction.over
        outer = around[-1].count if around and not around[-1].matrix else 1  # one matrix serves a tile

        def work(tile: Tile) -> float:
            held = tile.vectors * tile.last * tile.outer
            rounds = blocks / tile.vectors * -(-last.count // tile.last) * outer / tile.outer
            if contraction.by_column:  # every product reads a vector of the source, for which it waits
                return rounds * (tile.vectors + held)
            return rounds * max(held, tile.vectors + tile.last * tile.outer, LATENCY)

        def candidates() -> Iterator[Tile]:
            for vectors in (v for v in range(1, MOST_VECTORS + 1) if blocks % v == 0):
                most = max(1, (registers() - vectors) // vectors)
                for parts in range(-(-last.count // most), -(-last.count // most) + 3):
                    size = -(-last.count // parts)
                    yield Tile(width, vectors, size)
                    if size == last.count:
                        for more in (g for g in range(2, most // size + 1) if outer % g == 0):
                            yield Tile(width, vectors, size, more)

        return min(candidates(), key=work)


LATENCY = 8
"""So many sums have to go on at once for each product not to wait for the one before: 4 cycles, 2 of them in each."""

MOST_VECTORS = 4


def registers() -> int:
    """Return how many vectors fit into registers, but for a few."""
    return 28 if native().has("avx512f") else 7


@dataclass(frozen=True)
class ImageContractions:
    """What is contracted for each image.

    ``sizes`` is how many numbers an image has in the source, in the matrix (0 where all have the same) and in the result (0
    where it is the sum over images). A matrix in another order is first ``copied`` by loops from source to result.
    """

    contractions: tuple[Contraction, ...]
    sizes: tuple[int, int, int]
    padding: Padding | None = None
    copied: tuple[StridedLoop, ...] = ()

    @property
    def is_sum(self) -> bool:
        """Whether the result is the sum over images."""
        return not self.sizes[2]

    @property
    def memory(self) -> int:
        """How many numbers a chunk copies: the matrix, a padded image."""
        return self.matrix + (self.padding.size if self.padding else 0)

    @property
    def matrix(self) -> int:
        """How many numbers of the matrix are copied."""
        return math.prod(loop.count for loop in self.copied) if self.copied else 0

    @property
    def products(self) -> int:
        """How many products of numbers an image takes."""
        return sum(
            c.columns * math.prod(loop.count for loop in (*c.over, *c.along)) for c in self.contractions
        )

    def extent(self, images: int, kind: str) -> int:
        """Return into how many pieces the work can be divided: images, or parts of their sum."""
        return math.prod(_units(self.contractions[0], kind)) if self.is_sum else images


@cache
def contraction_text(kind: str, given: ImageContractions) -> str:
    """Return the code of a step that does contractions for each image; a sum over images is divided into units.

    Its arguments: source · matrix · result · memory for copies · how long a chunk is · how many images there are.
    """
    code = Code()
    places = [code.argument(place, "ptr") for place in range(3)]
    chunk = code.part[0] // code.argument(4)
    copy = Number(code.address(code.argument(3, "ptr").text, kind, chunk * given.memory), "ptr")
    if given.copied:
        places[1] = _reorder(code, kind, given.copied, places[1], copy)
        copy = Number(code.address(copy.text, kind, literal(given.matrix, "i64")), "ptr")
    if given.padding:
        _clear(code, kind, copy, given.padding.size)
    with code.loop(*((ZERO, code.argument(5)) if given.is_sum else code.part)) as image:
        arrays = [
            Number(code.address(array.text, kind, image * size), "ptr")
            for array, size in zip(places, given.sizes, strict=True)
        ]
        if given.padding:
            arrays[0] = _pad(code, kind, given.padding, arrays[0], copy)
        if any(contraction.overlap for contraction in given.contractions):
            _clear(code, kind, arrays[2], given.sizes[2])
        for contraction in given.contractions:
            writer = _Writer(code, kind, contraction, arrays, image.equals(ZERO) if given.is_sum else None)
            count = literal(math.prod(_units(contraction, kind)), "i64")
            writer.units(*(code.part if given.is_sum else (ZERO, count)))
    return module(code.define())


def _units(contraction: Contraction, kind: str) -> list[int]:
    """Return how often each loop around a tile goes round: blocks of columns, loops over the result, tiles."""
    tile = Tile.of(contraction, kind)
    *around, last = [loop.count for loop in contraction.over]
    if around:
        around[-1] //= tile.outer
    blocks = -(-contraction.columns // (tile.width * tile.vectors))
    return [blocks, *around, -(-last // tile.last)]


def _clear(code: Code, kind: str, array: Number, size: int) -> None:
    count = literal(size * BYTES[kind], "i64")
    code.external("@llvm.memset.p0.i64", "void", array, literal(0, "i8"), count, literal(0, "i1"))


def _reorder(code: Code, kind: str, loops: tuple[StridedLoop, ...], matrix: Number, copy: Number) -> Number:
    """Copy a matrix in another order, number by number."""
    with ExitStack() as entered:
        source = target = ZERO
        for loop in loops:
            index = entered.enter_context(code.loop(ZERO, literal(loop.count, "i64")))
            source, target = source + index * loop.source, target + index * loop.result
        number = code.load(code.address(matrix.text, kind, source), kind)
        code.store(number, code.address(copy.text, kind, target))
    return copy


def _pad(code: Code, kind: str, padding: Padding, image: Number, padded: Number) -> Number:
    """Copy an image between its zeros."""
    first = padding.before[0] * padding.length + padding.before[1]
    with code.loop(ZERO, literal(padding.rows, "i64")) as row:
        source = code.address(image.text, kind, row * padding.row)
        target = code.address(padded.text, kind, row * padding.length + first)
        count = literal(padding.row * BYTES[kind], "i64")
        code.external(
            "@llvm.memcpy.p0.p0.i64",
            "void",
            Number(target, "ptr"),
            Number(source, "ptr"),
            count,
            literal(0, "i1"),
        )
    return padded


class _Writer:
    """Writes one contraction; of a sum over images ``is_first`` is whether this is the first image."""

    def __init__(
        self, code: Code, kind: str, contraction: Contraction, arrays: list[Number], is_first: Number | None
    ) -> None:
        self.code, self.kind, self.contraction, self.is_first = code, kind, contraction, is_first
        self.tile = Tile.of(contraction, kind)
        self.source, self.matrix, self.result = (
            Number(code.address(array.text, kind, literal(start, "i64")), "ptr")
            for array, start in zip(arrays, contraction.start, strict=True)
        )
        *around, last = contraction.over
        outer = around[-1] if around else StridedLoop(1)
        self.points = [
            (g * outer.source + t * last.source, g * outer.result + t * last.result, t)
            for g in range(self.tile.outer)
            for t in range(self.tile.last)
        ]
        lanes = self.tile.width
        self.zero = literal(0, kind, lanes)
        self.sums = [[code.variable(self.zero) for _ in range(self.tile.vectors)] for _ in self.points]

    def units(self, first: Number, last: Number) -> None:
        """Go through units: each is a block of columns, and one tile."""
        code, tile = self.code, self.tile
        _, *counts = _units(self.contraction, self.kind)
        with code.loop(first, last) as unit:
            *around, innermost = self.contraction.over
            start, rest = (unit % counts[-1]) * tile.last, unit // counts[-1]
            begin = code.intrinsic("smin", start, literal(innermost.count - tile.last, "i64"))
            at = [begin * step for step in innermost.steps]
            for place in reversed(range(len(around))):
                index, rest = rest % counts[place], rest // counts[place]
                index = index * (tile.outer if place == len(around) - 1 else 1)
                at = [a + index * step for a, step in zip(at, around[place].steps, strict=True)]
            self.write(at, rest * (tile.width * tile.vectors), start - begin)

    def write(self, at: list[Number], column: Number, done: Number) -> None:
        """Sum for one tile; of its entries ``done`` are those of the tile before, too."""
        source, matrix, result = at
        code, kind, width = self.code, self.kind, self.tile.width
        columns = [column + v * width for v in range(self.tile.vectors)]
        masks: list[Number | None] = [None] * len(columns)
        if self.contraction.columns % width:
            left = literal(self.contraction.columns, "i64", 1, code) - columns[-1]
            masks[-1] = code.lanes(width) < code.splat(left, width)
        for variable in (variable for sums in self.sums for variable in sums):
            code.assign(variable, self.zero)
        with self.along() as (s, m):
            here = code.address(self.source.text, kind, source + s)
            vectors = [
                code.load(code.address(self.matrix.text, kind, matrix + m + c), kind, width, mask)
                for c, mask in zip(columns, masks, strict=True)
            ]
            for (offset, _, _), sums in zip(self.points, self.sums, strict=True):
                there = literal(offset, "i64", 1, code)
                x = code.splat(code.load(code.address(here, kind, there), kind), width)
                for variable, vector, c, mask in zip(sums, vectors, columns, masks, strict=True):
                    if self.contraction.by_column:
                        x = code.load(code.address(here, kind, there + c), kind, width, mask)
                    total = code.recall(variable, kind, width)
                    code.assign(variable, code.intrinsic("fmuladd", x, vector, total))
        adds = self.is_first is not None or self.contraction.overlap
        for (_, offset, t), sums in zip(self.points, self.sums, strict=True):
            with ExitStack() as only_once:
                if adds and self.contraction.over[-1].count % self.tile.last:
                    only_once.enter_context(code.when(done <= literal(t, "i64")))
                for variable, c, mask in zip(sums, columns, masks, strict=True):
                    total = code.recall(variable, kind, width)
                    address = code.address(self.result.text, kind, result + c + offset)
                    if adds:
                        before = code.load(address, kind, width, mask)
                        if self.is_first is not None:
                            before = code.select(self.is_first, self.zero, before)
                        total = total + before
                    code.store(total, address, mask)

    @contextmanager
    def along(self) -> Iterator[tuple[Number, Number]]:
        """Go along the sum; yields where its entry is in the source and in the matrix."""
        with ExitStack() as loops:
            s = m = ZERO
            for loop in self.contraction.along:
                index = loops.enter_context(self.code.loop(ZERO, literal(loop.count, "i64")))
                s, m = s + index * loop.source, m + index * loop.matrix
            yield s, m
