"""What a value of backward may be instead, if it is wrong: the right values of what its name or its numbers suggest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.intermediates.probes import Event
from handgrad.checking.intermediates.right_values import (
    RightValues,
    cosine,
    factor_between,
    in_layout,
    last_name,
    nearest,
    says_something,
    stems,
)
from handgrad.checking.subject import Array, Gradients, Inputs
from handgrad.tolerance import close

BLIND = 5  # values of forward that are tried where a name says nothing
TOGETHER = 12  # the same for all that a line of a loop computes
SHIFTS = 6  # of the times of backward's loop against those of forward's
SAME = 1e-7  # of the largest entry, for a gradient that is right with another's value

NOTHING: frozenset[str] = frozenset()


class Suggestion(NamedTuple):
    """Right values for the events of a site, and what they are."""

    values: dict[int, Array]  # by event
    what: str
    breaks: frozenset[str] = NOTHING  # gradients that may become wrong: of what is not yet updated
    scaled: bool = False  # whether a constant times these is tried too
    whole: bool = True  # whether a gradient is to be right in all its entries, or in more of them


@dataclass(frozen=True)
class Suggestions:
    """What the values of one run may be instead."""

    events: list[Event]
    inputs: Inputs
    gradients: Gradients  # that backward returns
    right: Gradients
    wrong: Set[str]
    values: RightValues | None  # where forward is traced

    def suggested(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield what the values of a site are to be by their names, or because they are returned as they are."""
        if self._is_update(events):
            yield from self._not_yet_updated(events)
        else:
            yield from self._named(events)
            yield from self.returned(events)

    def entirely(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield the same, right in all entries, and not but for a constant: that may be of a function it is given to."""
        for suggestion in self.suggested(events):
            yield suggestion._replace(scaled=False, whole=True)

    def _named(self, events: list[int]) -> Iterator[Suggestion]:
        if self.values is None or not (self._carries(events) or self._says_something(events)):
            return
        own, wanted = last_name(self.events[events[0]].name), stems(self.events[events[0]].name)
        for family in self.values.families:
            if len(events) == 1:
                for node in family.called({own}):
                    value = self.values.trace.values[node]
                    yield from self._candidate({events[0]: value}, f"forward's {self._shown(node)}")
            for pairs in (
                self._pairings(events, family.called({own}), family.holders) if len(events) > 1 else ()
            ):
                values = {k: self.values.trace.values[node] for k, node in pairs.items()}
                shown = self._shown(next(iter(pairs.values())))
                yield from self._candidate(values, f"forward's {shown}", whole=False)
            for pairs in self._pairings(events, family.called(wanted), family.holders):
                yield from self._gradient_of(pairs, whole=False)
                for part in range(len(self.values.parts.get(next(iter(pairs.values())), ()))):
                    yield from self._gradient_of(pairs, part)

    def _says_something(self, events: list[int]) -> bool:
        return any(says_something(self.events[k].value) for k in events)

    def _carries(self, events: list[int]) -> bool:
        """Whether a line of a loop computes arrays: zeros there may be what is not carried."""
        sites = (self.events[k].site.kind == "value" for k in events)
        return len(events) > 1 and all(sites) and np.ndim(self.events[events[0]].value) > 0

    def _gradient_of(
        self, pairs: Mapping[int, int], part: int | None = None, *, whole: bool = True
    ) -> Iterator[Suggestion]:
        assert self.values is not None
        found: dict[int, Array] = {}
        for event, node in pairs.items():
            parts = self.values.parts.get(node, [])
            if part is None and node in self.values.gradients:
                found[event] = self.values.gradients[node]
            elif part is not None and part < len(parts):
                found[event] = parts[part]
        if len(found) == len(pairs):
            node = next(iter(pairs.values()))
            what = f"the gradient of {self._shown(node)}"
            yield from self._candidate(found, what, scaled=part is None, whole=whole)

    def _candidate(
        self, values: Mapping[int, Any], what: str, *, scaled: bool = False, whole: bool = True
    ) -> Iterator[Suggestion]:
        """Yield right values in the layout of those that are there, where they fit and are others."""
        fitted: dict[int, Array] = {}
        factors = []
        for k, right in values.items():
            got = np.asarray(self.events[k].value, np.float64)
            new = in_layout(np.asarray(right, np.float64), got.shape)
            if new is None:
                return
            fitted[k] = new
            factors.append(factor_between(got, new))
        if any(abs(factor - 1) > SAME for factor in factors):
            yield Suggestion(fitted, what, scaled=scaled and not any(factors), whole=whole)

    def _pairings(
        self, events: list[int], nodes: list[int], holders: Mapping[int, int]
    ) -> Iterator[dict[int, int]]:
        """Yield which event may be of which value: of the same object, else the last value first, or in order."""
        by_holder = {holder: node for node, holder in holders.items()}
        own = [self.events[k].holder for k in events]
        if len(nodes) > 1 and len(by_holder) == len(nodes) and all(holder in by_holder for holder in own):
            yield {k: by_holder[holder] for k, holder in zip(events, own, strict=True)}
            return
        seen: list[dict[int, int]] = []
        for row in (nodes[::-1], nodes):
            for start in range(1 - len(events), len(row)):
                pairs = {k: row[start + j] for j, k in enumerate(events) if 0 <= start + j < len(row)}
                fit = {k: node for k, node in pairs.items() if self._fits(k, node)}
                if fit and (len(fit) > 1 or len(events) == 1) and fit not in seen:
                    seen.append(fit)
        if len(events) > 1:  # those that leave out the fewest
            seen.sort(key=len, reverse=True)
        yield from seen[:SHIFTS] if len(events) > 1 else seen

    def _fits(self, event: int, node: int) -> bool:
        assert self.values is not None
        value = self.values.trace.values[node]
        return in_layout(np.asarray(value), np.shape(self.events[event].value)) is not None

    def returned(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield the right gradient where a value is what is returned, but for a constant."""
        for name, k in product(sorted(self.wrong), events):
            got, right = self.gradients[name], self.right[name]
            value = np.asarray(self.events[k].value, np.float64)
            if value.shape == got.shape != right.shape and close(value, got):
                yield Suggestion({k: right}, f"the gradient of {name}")
            factor, new = factor_between(value, got), in_layout(right, value.shape)
            if not factor or new is None:
                continue
            others = (self.right[other] for other in self.right if other != name)
            is_others = any(abs(factor_between(value, other) - 1) <= SAME for other in others)
            if is_others and self.events[k].site.kind != "returned":
                continue  # it is right, and returned for another
            if abs(factor - 1) > SAME and (self._is_scaled(value) or factor_between(got, right) != 0):
                continue  # another line may make the factor
            yield Suggestion({k: factor * new}, f"the gradient of {name}")

    def _is_scaled(self, value: Array) -> bool:
        return self.values is not None and self.values.is_scaled(value)

    def updated(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield what a parameter is after its update by the right gradient."""
        for name, k in product(sorted(self.wrong), events):
            start = self._start_of(name, self.events[k])
            if start is not None:
                factor = factor_between(self.events[k].value - start, self.gradients[name])
                new = in_layout(self.right[name], start.shape)
                if factor and new is not None:
                    yield Suggestion({k: start + factor * new}, f"{name} after a step along its gradient")

    def _start_of(self, name: str, event: Event) -> Array | None:
        """Return a parameter before its update, where an event is its update."""
        is_same = last_name(event.name) == last_name(name) and name in self.inputs
        return self.inputs[name] if is_same and self.inputs[name].shape == np.shape(event.value) else None

    def _is_update(self, events: list[int]) -> bool:
        return any(self._start_of(name, self.events[events[-1]]) is not None for name in self.inputs)

    def _not_yet_updated(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield a parameter as it was, where it is updated before the error has passed it."""
        for name in self.inputs:
            start = self._start_of(name, self.events[events[-1]])
            if start is not None and len(events) == 1 and not close(self.events[events[0]].value, start):
                what = f"{name} as forward had it: it is updated before the gradient has passed through it"
                yield Suggestion({events[0]: start}, what, frozenset([name]))

    def blind(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield what else a value may be: a gradient or a local derivative of the same shape, the most alike first."""
        said = self._says_something(events) or self._carries(events)
        if self.values is None or not said or self._is_update(events):
            return
        if len(events) > 1:
            yield from self._blind_together(events)
            return
        value = np.asarray(self.events[events[0]].value, np.float64)
        gradients = [((n,), g) for n, g in self.values.gradients.items() if n in self.values.of_node]
        derivatives = [
            ((a, b), d) for a, b, d in self.values.local_derivatives if not factor_between(value, d)
        ]
        every = [
            (nodes, new)
            for nodes, each in [*gradients, *derivatives]
            if (new := in_layout(each, value.shape)) is not None
        ]
        named = [each for each in every if all(map(self._is_named, each[0]))]
        for nodes, new in [*nearest(value, named)[:BLIND], *nearest(value, every)[:BLIND]]:
            what = " by ".join(map(self._shown, nodes))
            kind = "gradient" if len(nodes) == 1 else "derivative"
            yield from self._candidate({events[0]: new}, f"the {kind} of {what}", scaled=True)

    def _is_named(self, node: int) -> bool:
        assert self.values is not None
        return bool(self.values.of_node[node].names.get(node))

    def _blind_together(self, events: list[int]) -> Iterator[Suggestion]:
        """Yield the gradients of what a loop of forward computes for what a loop of backward does."""
        assert self.values is not None
        found: list[tuple[float, Suggestion]] = []
        for family in self.values.families:
            for pairs in self._pairings(events, family.nodes, family.holders):
                for suggestion in self._all_of(pairs):
                    alike = [cosine(self.events[k].value, value) for k, value in suggestion.values.items()]
                    found.append((float(np.mean(alike)) * len(alike), suggestion))
        found.sort(key=lambda each: -each[0])
        yield from (suggestion for _, suggestion in found[:TOGETHER])

    def _all_of(self, pairs: Mapping[int, int]) -> Iterator[Suggestion]:
        """Yield the gradients of values, and what adds up to them."""
        assert self.values is not None
        yield from self._gradient_of(pairs)
        for part in range(len(self.values.parts.get(next(iter(pairs.values())), ()))):
            yield from self._gradient_of(pairs, part)

    def _shown(self, node: int) -> str:
        """Return what the author calls a value of forward's."""
        assert self.values is not None
        family = self.values.of_node[node]
        names = family.names.get(node, {})
        named = next((name for name in names if name in self.inputs), "") or next(iter(names), "")
        return named or f"what line {family.line} computes"
