"""What each value of forward, and each gradient of one, is right: by the trace, with the author's names."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.adjoint.chain_rule import vector_jacobian_product
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.interfaces.names import PREFIXES, SUFFIXES, plain
from handgrad.checking.intermediates.probes import Event
from handgrad.checking.subject import Array
from handgrad.tolerance import close

SMALLEST = 1e-12  # of the largest entry: a smaller one says nothing of a factor
ENDS = 2  # of the terms of a gradient, at both ends, that are compared: a loop has many
SHORT = 60  # values of a forward that the derivatives between all of them are little work
TIMES = ("next", "prev", "previous", "last")  # words of a value that is carried through time
MOST = 400  # values of forward whose gradients are compared: a longer forward is a loop over numbers, for its arrays


@dataclass
class Family:
    """The values that one place in forward has computed, one after the other; often one."""

    nodes: list[int] = field(default_factory=list)
    names: dict[int, dict[str, None]] = field(
        default_factory=dict
    )  # the author's, by node; the first is shown
    holders: dict[int, int] = field(default_factory=dict)  # the object that holds a value, by node
    line: int = 0

    def called(self, wanted: Set[str]) -> list[int]:
        """Return the values that have one of some names, apart from what holds them and from case."""
        return [
            node
            for node in self.nodes
            if any(self._spellings(name) & wanted for name in self.names.get(node, ()))
        ]

    def _spellings(self, name: str) -> set[str]:
        """Return what a value is called by itself, and in a loop: ``h`` of ``h_prev``, ``hs[3]``."""
        own = last_name(name)
        listed = own.rstrip("0123456789").removesuffix("s")
        return {own, timeless(own), listed} if len(self.nodes) > 1 else {own, timeless(own)}


def last_name(name: str) -> str:
    """Return what a value is called itself.

    >>> last_name("self.layers[1].out"), last_name("cache['Z1']"), last_name("zs[2]")
    ('out', 'z1', 'zs2')
    """
    head, bracket, key = name.removesuffix("]").rpartition("[") if name.endswith("]") else ("", "", "")
    if bracket and key[:1] in "'\"":
        return plain(key.strip("'\""))
    last = (head if bracket else name).rpartition(".")[2]
    return plain(last) + (key if key.isdigit() else "")


def stems(name: str) -> set[str]:
    """Return what a gradient of this name may be the gradient of; empty where the name is of no gradient.

    >>> sorted(stems("dl_dz2")), sorted(stems("dc_next"))
    (['dz2', 'ldz2', 'z2'], ['c', 'cnext'])
    """
    found: set[str] = set()
    left = {last_name(name)}
    while left:
        each = left.pop()
        shorter = {*map(each.removeprefix, PREFIXES), *map(each.removesuffix, SUFFIXES)} - {each, ""}
        left |= shorter - found
        found |= shorter
    return found | {timeless(each) for each in found}


def timeless(name: str) -> str:
    """Return a plain name without the word for its time: ``c`` of ``prevc`` and ``cnext``."""
    for word in TIMES:
        name = name.removeprefix(word) or name
        name = name.removesuffix(word) or name
    return name


class RightValues:
    """The values of a traced forward and their gradients."""

    def __init__(
        self, trace: ForwardTrace, upstream: Sequence[Array], events: Sequence[Event], seen: Sequence[Any]
    ) -> None:
        """Take the events of forward, and for each the number of the traced value that is seen there."""
        self.trace = trace
        with np.errstate(all="ignore"):
            self.gradients = {
                k: np.asarray(v, np.float64) for k, v in adjoints(trace, trace.values, list(upstream)).items()
            }
        self.families = self._families(events, seen)
        self.of_node = {node: family for family in self.families for node in family.nodes}

    def _families(self, events: Sequence[Event], seen: Sequence[Any]) -> list[Family]:
        by_place: dict[Any, Family] = {}
        where: dict[int, Family] = {}
        for name, node in self.trace.inputs.items():
            where[node] = Family([node], {node: {name: None}})
        steps = sorted({node for node in seen if node is not None})  # a loop's lines begin anew after each
        arrays = {node for node in steps if np.ndim(self.trace.values[node])}
        count: Counter[Any] = Counter()
        for number, operation in enumerate(self.trace.operations):
            if number >= MOST and operation.output not in arrays:
                continue
            step = (bisect_left(steps, operation.output), operation.place, operation.name)
            count[step] += 1
            place = (operation.place, operation.name, count[step])
            family = by_place.setdefault(place, Family(line=operation.place[1]))
            family.nodes.append(operation.output)
            where[operation.output] = family
        for event, node in zip(events, seen, strict=True):
            if node in where:
                if event.name:
                    where[node].names.setdefault(node, {}).setdefault(event.name)
                where[node].line = where[node].line or event.site.line
                if event.holder:
                    where[node].holders.setdefault(node, event.holder)
        return list({id(family): family for family in where.values()}.values())

    @cached_property
    def parts(self) -> dict[int, list[Array]]:
        """What adds up to the gradient of a value that is used several times, and the sums of some of it."""
        edges: dict[int, list[Array]] = {}
        for operation, k in self.trace.edges():
            gradient, node = self.gradients.get(operation.output), operation.inputs[k]
            if gradient is not None and node in self.of_node:
                product = vector_jacobian_product(operation, k, self.trace.values, gradient)
                edges.setdefault(node, []).append(np.asarray(product, np.float64))
        found = {}
        for node, terms in edges.items():
            if len(terms) > 1:
                ends = [*terms[:ENDS], *terms[ENDS:][-ENDS:]]
                sums = [sum(terms) - end for end in ends] if len(terms) > 2 else []
                found[node] = [*ends, *map(np.asarray, sums)]
        return found

    @cached_property
    def local_derivatives(self) -> list[tuple[int, int, Array]]:
        """The derivatives of values that were computed entry by entry of others: (value, other, derivative)."""
        found = []
        named = [node for family in self.families for node in family.names]
        if len(self.of_node) <= SHORT:
            named = list(self.of_node)
        for node in [*dict.fromkeys([*named, *self.trace.outputs])]:
            if node not in self.trace.active or np.ndim(self.trace.values[node]) == 0:
                continue
            shape = np.shape(self.trace.values[node])
            chain = self._elementwise_ancestors(node, shape)
            for other in chain & {*named, *self.trace.inputs.values()}:
                derivative = adjoints(
                    self.trace, self.trace.values, [None] * len(self.trace.outputs),
                    seeds={node: np.ones(shape)}, until=[other],
                ).get(other)  # fmt: skip
                if derivative is not None:
                    found.append((node, other, np.asarray(derivative, np.float64)))
        return found

    def _elementwise_ancestors(self, node: int, shape: tuple[int, ...]) -> set[int]:
        """Return the values from which another is computed entry by entry, and by no other way."""
        chain, ends = {node}, set()
        for operation in reversed(self.trace.operations):
            if operation.output not in chain:
                continue
            for k in operation.inputs:
                if operation.is_elementwise and np.shape(self.trace.values[k]) == shape:
                    chain.add(k)
                elif k in self.trace.active:
                    ends.add(k)
        behind = {each for end in ends for each in self.trace.ancestors(end)}
        return {k for k in chain - behind if k != node and k in self.trace.active}

    def is_value(self, value: Array) -> bool:
        """Whether some numbers are a value of forward's."""
        return any(_same(value, self.trace.values[node]) for node in self.of_node)

    def is_gradient(self, value: Array, stems: Set[str] = frozenset(), *, is_whole: bool = False) -> bool:
        """Whether some numbers are a gradient, or what adds up to one: of what their name promises, else of any value."""
        named = [node for family in self.families for node in family.called(stems)]
        fitting = [node for node in named if np.size(self.trace.values[node]) == value.size]
        return any(
            _same(value, gradient)
            for gradient in self._every_gradient(
                value.size, fitting or self.of_node, parts=not (fitting and is_whole)
            )
        )

    def is_local_derivative(self, value: Array) -> bool:
        """Whether some numbers are the derivative of one value by another, entry by entry."""
        return any(_same(value, derivative) for _, _, derivative in self.local_derivatives)

    def is_scaled(self, value: Array) -> bool:
        """Whether some numbers are a gradient times a constant."""
        return any(
            factor_between(value, gradient) for gradient in self._every_gradient(value.size, self.of_node)
        )

    def _every_gradient(self, size: int, nodes: Iterable[int], *, parts: bool = True) -> Iterator[Array]:
        for node in nodes:
            if node in self.gradients and self.gradients[node].size == size:
                yield self.gradients[node]
                yield from self.parts.get(node, ()) if parts else ()


def layouts(value: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array as others write it in a shape: with axes of length 1, or transposed."""
    if value.shape == shape:
        yield value
    elif [n for n in value.shape if n > 1] == [n for n in shape if n > 1]:
        yield value.reshape(shape)
    if value.ndim == 2 and value.shape[::-1] == shape and min(shape) > 1:
        yield value.T


def in_layout(value: Array, shape: tuple[int, ...]) -> Array | None:
    """Return an array in a shape, or None where it does not fit."""
    return next(layouts(value, shape), None)


def factor_between(value: Array, other: Array) -> float:
    """Return the constant by which one array is another's multiple, in its layout or another; 0 where it is none."""
    for each in layouts(other, np.shape(value)):
        size = float(np.abs(each).max(initial=0))
        if size and np.all(np.isfinite(each)) and np.all(np.isfinite(value)):
            factor = float(np.vdot(each, value) / np.vdot(each, each))
            if abs(factor) > SMALLEST and close(value, factor * each):
                return factor
    return 0.0


def _same(value: Array, other: Any) -> bool:
    if np.size(other) != value.size:
        return False
    return any(close(value, each) for each in layouts(np.asarray(other), value.shape))


def says_something(value: Any) -> bool:
    """Whether a value is of floating point, and not one number everywhere, like room that is filled later."""
    if isinstance(value, float | np.floating):
        return True
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.size == 0:
        return False
    return value.size == 1 or bool(np.any(value != value.flat[0]))


def cosine(value: Array, other: Array) -> float:
    """Return how much two arrays point in one direction, or in opposite ones: from 0 to 1."""
    norm = float(np.linalg.norm(value) * np.linalg.norm(other))
    return abs(float(np.vdot(value, other))) / norm if norm else 0.0


def nearest(value: Array, candidates: Iterable[tuple[Any, Array]]) -> list[tuple[Any, Array]]:
    """Return candidates for a value, those that point in its direction first."""
    different: list[tuple[Any, Array]] = []
    for what, each in sorted(candidates, key=lambda each: -cosine(value, each[1])):
        if not any(np.array_equal(each, other) for _, other in different):
            different.append((what, each))
    return different
