"""The contractions of a convolution: forward, in its weights, and in its input."""

from __future__ import annotations

import math
from dataclasses import dataclass

from handgrad.engines.compiled.contractions import (
    Contraction,
    ImageContractions,
    Padding,
    StridedLoop,
    merged,
)
from handgrad.engines.compiled.ir import LANES
from handgrad.program.windows import WindowGeometry


@dataclass(frozen=True)
class _Groups:
    """How channels of images and outputs are divided: ``count`` groups of so many ``channels`` and ``outputs`` each.

    A group for each channel, with one output, is no group but a column.
    """

    count: int
    channels: int
    outputs: int
    by_column: bool

    @classmethod
    def of(cls, groups: int, channels: int, outputs: int) -> _Groups:
        if groups == channels == outputs > 1:
            return cls(1, 1, outputs, by_column=True)
        return cls(groups, channels // groups, outputs // groups, by_column=False)


def products_of_windows(g: WindowGeometry, outputs: int, groups: int = 1) -> ImageContractions:
    """``z = windows(x) @ W``: (P, Q, K L I) times (K L I, O), of which only blocks on a diagonal are there."""
    padding, row = _padded(g)
    each = _Groups.of(groups, g.channels, outputs)
    (p, q), (down, across), d = g.counts, g.size, g.dilation
    rows = g.places * each.channels
    width = _block(rows, each.outputs)
    blocks = each.outputs // width
    over = (
        StridedLoop(each.count, each.channels, blocks * rows * width, each.outputs),
        StridedLoop(blocks, 0, rows * width, width),
        StridedLoop(p, g.stride * row, 0, q * outputs),
        StridedLoop(q, g.stride * g.channels, 0, outputs),
    )
    along = (
        StridedLoop(down, d * row, across * each.channels * width),
        StridedLoop(across, d * g.channels, each.channels * width),
        StridedLoop(each.channels, 1, width),
    )
    contraction = Contraction(_over(over), merged(along), width, by_column=each.by_column)
    sizes = (g.sizes[0] * g.sizes[1] * g.channels, 0, p * q * outputs)
    copied = (
        StridedLoop(rows, outputs, 0, width),
        StridedLoop(outputs // width, width, 0, rows * width),
        StridedLoop(width, 1, 0, 1),
    )
    return ImageContractions((contraction,), sizes, padding, copied if outputs > width else ())


LARGE = 2**15
"""Of a matrix with more numbers, columns are copied so that those that a tile reads are neighbours, …"""

WIDTH = 32
"""… this many: rows that are a power of two apart would otherwise use few of the places of a cache."""


def _block(rows: int, columns: int) -> int:
    """Return how many columns of a matrix are copied together."""
    return WIDTH if rows * columns > LARGE and columns > WIDTH and columns % WIDTH == 0 else columns


def _over(loops: tuple[StridedLoop, ...]) -> tuple[StridedLoop, ...]:
    """Return loops over a result, the last of which reads the same part of the matrix all the time."""
    few = merged(loops)
    return (*few, StridedLoop(1)) if few[-1].matrix else few


def products_with_windows(g: WindowGeometry, outputs: int, groups: int = 1) -> ImageContractions:
    """``dW = windows(x).T @ dz``, summed over images: (K L I, P Q) times (P Q, O), the blocks on a diagonal alone."""
    padding, row = _padded(g)
    each = _Groups.of(groups, g.channels, outputs)
    (p, q), (down, across), d = g.counts, g.size, g.dilation
    over = (
        StridedLoop(each.count, each.channels, each.outputs, each.outputs),
        StridedLoop(down, d * row, 0, across * each.channels * outputs),
        StridedLoop(across, d * g.channels, 0, each.channels * outputs),
        StridedLoop(each.channels, 1, 0, outputs),
    )
    along = (StridedLoop(p, g.stride * row, q * outputs), StridedLoop(q, g.stride * g.channels, outputs))
    contraction = Contraction(_over(over), merged(along), each.outputs, by_column=each.by_column)
    sizes = (g.sizes[0] * g.sizes[1] * g.channels, p * q * outputs, 0)
    return ImageContractions((contraction,), sizes, padding)


def _padded(g: WindowGeometry) -> tuple[Padding | None, int]:
    """Return how images are padded, and how long a row is then."""
    (h, v), (above, left) = g.sizes, g.padding
    padding = Padding(h, v * g.channels, (above, left * g.channels), (above, left * g.channels))
    return (padding if above or left else None), padding.length


@dataclass(frozen=True)
class _Phase:
    """Entries of dx along one axis that the same places of windows reach.

    From the ``first`` on, a stride apart, there are ``count``; ``places`` are the first such place, how far the next is,
    and how many; ``start`` and ``step``: from which window on, for the first entry and place, and how many the next
    place's is before.
    """

    first: int
    count: int
    places: tuple[int, int, int]
    start: int
    step: int


def _phases(length: int, reach: int, padding: int, stride: int, dilation: int) -> list[_Phase]:
    """Return the entries of one axis, by the rest of their distance from the padding's start, divided by the stride."""
    phases = []
    for first in range(min(stride, length)):
        places = [k for k in range(reach) if (first + padding - dilation * k) % stride == 0]
        apart = places[1] - places[0] if len(places) > 1 else 1
        start = (first + padding - dilation * places[0]) // stride if places else 0
        count = -(-(length - first) // stride)
        shape = (places[0] if places else 0, apart, len(places))
        phases.append(_Phase(first, count, shape, start, dilation * apart // stride))
    return phases


def sums_of_windows(g: WindowGeometry, outputs: int, groups: int = 1) -> ImageContractions:
    """``dx = add_windows(dz @ W.T)``: (P, Q, O) times (O, K L I), blocks on a diagonal of it, added up."""
    (p, q), (h, v), vector = g.counts, g.sizes, LANES["float"]
    gathered = h * v * math.prod(g.size) * -(-g.channels // vector) * outputs / g.stride**2
    scattered = p * q * g.size[0] * -(-(g.size[1] * g.channels) // vector) * (outputs + ADDING)
    can_scatter = g.dilation == groups == 1 and not any(g.padding)
    if can_scatter and scattered < gathered:
        return _scattered(g, outputs)
    return _gathered(g, outputs, _Groups.of(groups, g.channels, outputs))


ADDING = 6
"""Adding a vector to what is in memory takes as long as so many products."""


def _scattered(g: WindowGeometry, outputs: int) -> ImageContractions:
    """Add each window's rows where they were taken: few channels fill vectors better that way."""
    (p, q), (h, v), (k, _) = g.counts, g.sizes, g.size
    reach = g.size[1] * g.channels
    over = (
        StridedLoop(k, 0, outputs * reach, v * g.channels),
        StridedLoop(p, q * outputs, 0, g.stride * v * g.channels),
        StridedLoop(q, outputs, 0, g.stride * g.channels),
    )
    contraction = Contraction(_over(over), (StridedLoop(outputs, 1, reach),), reach, overlap=True)
    sizes = (p * q * outputs, 0, h * v * g.channels)
    copied = (
        StridedLoop(k, reach * outputs, 0, outputs * reach),
        StridedLoop(reach, outputs, 0, 1),
        StridedLoop(outputs, 1, 0, reach),
    )
    return ImageContractions((contraction,), sizes, copied=copied)


def _gathered(g: WindowGeometry, outputs: int, each: _Groups) -> ImageContractions:
    """Sum for each entry of dx over the windows that reach it."""
    (p, q), (h, v), inputs = g.counts, g.sizes, g.channels
    down, across = (
        _phases(length, reach, around, g.stride, g.dilation)
        for length, reach, around in zip(g.sizes, g.size, g.padding, strict=True)
    )
    (above, below), (left, right) = (_margins(phases, n) for phases, n in ((down, p), (across, q)))
    padding = Padding(p, q * outputs, (above, left * outputs), (below, right * outputs))
    # of a group for each channel, columns of dx are columns of dz
    columns, summed = (inputs, 1) if each.by_column else (each.channels, each.outputs)
    width = _block(g.places * summed, columns)
    blocks, row, place = columns // width, padding.length, summed * width
    contractions = []
    for a in down:
        for b in across:
            over = (
                StridedLoop(each.count, summed, blocks * g.places * place, columns),
                StridedLoop(blocks, 0, g.places * place, width),
                StridedLoop(a.count, row, 0, g.stride * v * inputs),
                StridedLoop(b.count, outputs, 0, g.stride * inputs),
            )
            along = (
                StridedLoop(a.places[2], -a.step * row, a.places[1] * g.size[1] * place),
                StridedLoop(b.places[2], -b.step * outputs, b.places[1] * place),
                StridedLoop(summed, 1, width),
            )
            start = (
                (a.start + above) * row + (b.start + left) * outputs,
                (a.places[0] * g.size[1] + b.places[0]) * place,
                (a.first * v + b.first) * inputs,
            )
            contractions.append(
                Contraction(_over(over), merged(along), width, start, by_column=each.by_column)
            )
    is_padded = above or below or left or right
    sizes = (p * q * outputs, 0, h * v * inputs)
    copied = (
        StridedLoop(g.places, each.channels * outputs, 0, place),
        StridedLoop(each.count, summed, 0, blocks * g.places * place),
        StridedLoop(blocks, width * outputs, 0, g.places * place),
        StridedLoop(width, outputs, 0, 1),
        StridedLoop(summed, 1, 0, width),
    )
    return ImageContractions(
        tuple(contractions), sizes, padding if is_padded else None, () if each.by_column else copied
    )


def _margins(phases: list[_Phase], count: int) -> tuple[int, int]:
    """Return how many windows that are not there are asked for, before the first and after the last."""
    lowest = min(phase.start - phase.step * max(phase.places[2] - 1, 0) for phase in phases)
    highest = max(phase.start + phase.count - 1 for phase in phases)
    return max(0, -lowest), max(0, highest - (count - 1))
