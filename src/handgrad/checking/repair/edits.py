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
from handgrad.checking.repair.naming import everywhere, names
from handgrad.checking.repair.places import Place, Proposal
from handgrad.checking.repair.source import Change, Edit

FAMILIES: tuple[Callable[[Place], Iterator[Proposal]], ...] = (
    signs, fewer, numbers, factors, everywhere, comparisons, operators, brackets, products, transposes, reductions,
    reshapes, calls, counts, names, indices, copies, ranges,
)  # fmt: skip


def expression_changes(places: Sequence[Place]) -> Iterator[Change]:
    """Yield every small edit of one expression, or the same one of several alike."""
    yield from reduced_alike(places)
    for place in places:
        for family in FAMILIES:
            for new, cost in family(place):
                yield Change((Edit(place.node, new),), cost)
