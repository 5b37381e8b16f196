"""All small edits of expressions: what people write where something else was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from handgrad.checking.repair.arithmetic import (
    brackets,
    counts,
    factors,
    fewer,
    numbers,
    operators,
    products,
    signs,
    transposes,
)
from handgrad.checking.repair.arrays import (
    calls,
    comparisons,
    copies,
    indices,
    ranges,
    reduced_alike,
    reductions,
    reshapes,
)
from handgrad.checking.repair.naming import everywhere, lent, names
from handgrad.checking.repair.places import Place, Proposal
from handgrad.checking.repair.source import Change, Edit

KEEPING_SHAPE = (signs, fewer, numbers, factors, everywhere, comparisons)
FAMILIES: tuple[Callable[[Place], Iterator[Proposal]], ...] = (
    *KEEPING_SHAPE, operators, brackets, products, transposes, reductions, reshapes, calls, counts, names, lent, indices,
    copies, ranges,
)  # fmt: skip


def expression_changes(places: Sequence[Place]) -> Iterator[Change]:
    """Yield every small edit of one expression, or the same one of several alike."""
    yield from reduced_alike(places)
    for place in places:
        for family in FAMILIES:
            for new, cost in family(place):
                yield Change((Edit(place.node, new),), cost, family in KEEPING_SHAPE)
