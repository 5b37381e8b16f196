"""Mistakes in the derivative of a stretch of forward: a sigmoid is four operations, and one in its author's head.

A region leads from a value a to a value b of the same shape. Where every operation between works entry by entry its
Jacobian is a diagonal; elsewhere (softmax, a normalisation) it is a matrix, and people write its diagonal only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.checking.adjoint import cotangents, jacobian
from handgrad.checking.diagnosis.formulas import FORMULAS, Formula
from handgrad.checking.diagnosis.guess import agree
from handgrad.checking.diagnosis.planted import Planted, Predict
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.recording import Operation
from handgrad.checking.subject import Array

LONGEST = 16  # operations of a region
TRY = 40.0  # microseconds to look at a mistake
LARGEST = 150  # entries of a value whose Jacobian is computed


@dataclass(frozen=True)
class Region:
    """The operations from a value to another of the same shape."""

    start: int
    end: int
    operations: tuple[Operation, ...]
    diagonal: bool

    def flow(self, replayed: Replay, gradient: Any) -> Array:
        """Carry a gradient of the end back to the start."""
        found = cotangents(
            replayed.recording, replayed.values, None, seeds={self.end: gradient}, until=[self.start]
        )
        return np.asarray(found.get(self.start, np.zeros(np.shape(replayed.values[self.start]))))

    def skipped(self, replayed: Replay) -> Any:
        """Hand the gradient of the end on to the start unchanged."""
        return replayed.gradients[self.end]

    def twice(self, replayed: Replay) -> Any:
        """Carry the gradient of the end back two times."""
        return self.flow(replayed, self.flow(replayed, replayed.gradients[self.end]))

    def slope_at(self, replayed: Replay, point: Any) -> Array:
        """Return the slopes of a diagonal region at another point than its own."""
        values = list(replayed.values)
        values[self.start] = point
        for operation in self.operations:
            values[operation.output] = operation.run(values)
        ones = np.ones(np.shape(values[self.end]))
        found = cotangents(replayed.recording, values, None, seeds={self.end: ones}, until=[self.start])
        return np.asarray(found.get(self.start, np.zeros(np.shape(point))))


def regions(replays: Replays) -> Iterator[Region]:
    """Yield every region, the shortest first."""
    recording = replays.recording
    values = replays.first.values
    found: list[Region] = []
    for end in (
        operation.output for operation in recording.operations if operation.output in recording.active
    ):
        if replays.late:
            break
        ancestors = replays.ancestors(end)
        for start in ancestors & recording.active - {end}:
            if np.shape(values[start]) != np.shape(values[end]) or end not in replays.first.gradients:
                continue
            between = _between(replays, start, end, ancestors)
            if 0 < len(between) <= LONGEST:
                diagonal = all(
                    o.kind == "elementwise" and np.shape(values[o.output]) == np.shape(values[end])
                    for o in between
                )
                found.append(Region(start, end, between, diagonal))
    yield from sorted(found, key=lambda region: (not region.diagonal, len(region.operations)))


def _between(replays: Replays, start: int, end: int, ancestors: frozenset[int]) -> tuple[Operation, ...]:
    reached, between = {start}, []
    for operation in replays.recording.operations:
        if operation.output in ancestors and any(i in reached for i in operation.inputs):
            reached.add(operation.output)
            between.append(operation)
    return tuple(between)


@dataclass(frozen=True)
class Reach:
    """How a gradient added at a value reaches the wrong arguments, as one matrix: a quick look before a careful one."""

    matrix: Array | None
    off: Array

    def allows(self, added: Array) -> bool:
        """Whether a gradient added at the value may explain some argument; without a matrix any may."""
        if self.matrix is None:
            return True
        with np.errstate(all="ignore"):
            reached = self.matrix @ np.ravel(added)
        return bool(np.all(np.abs(reached - self.off) <= 1e-5 * np.abs(self.off).max(initial=0)))


def reach(replays: Replays, value: int) -> Reach:
    """Find how a gradient at a value reaches the wrong arguments of the first sample."""
    replayed = replays.first
    size = int(np.size(replayed.values[value]))
    off = np.concatenate([replayed.off(name).ravel() for name in replays.wrong])
    if size > LARGEST:
        return Reach(None, off)
    columns = []
    replays.pay(size)
    for position in range(size):
        basis = np.zeros(size)
        basis[position] = 1
        spread = replayed.spread({value: basis.reshape(np.shape(replayed.values[value]))})
        columns.append(np.concatenate([spread[name].ravel() for name in replays.wrong]))
    matrix = np.stack(columns, axis=1)
    return Reach(matrix if np.all(np.isfinite(matrix)) else None, off)


def in_regions(replays: Replays) -> Iterator[Planted]:
    """Yield mistakes in the derivative of a region."""
    known: dict[int, Reach] = {}
    for region in regions(replays):
        if replays.late:
            return
        if region.start not in known:
            known[region.start] = reach(replays, region.start)
        right = region.flow(replays.first, replays.first.gradients[region.end])
        replays.pay()
        for code, words, cost, make in _mistakes(replays, region):
            replays.effort.spend(TRY)
            with np.errstate(all="ignore"):
                wrong = make(replays.first)
            if wrong is None or np.shape(wrong) != np.shape(right):
                continue
            if known[region.start].allows(wrong - right):
                yield Planted(code, words, cost, _instead(region, make), region.operations[-1])


Make = Callable[[Replay], Any]
"""Return what the gradient of a region's start is instead; None where the mistake cannot be made."""

Mistake = tuple[str, str, float, Make]
"""Code, evidence, cost, and the gradient."""


def in_layers(replays: Replays) -> Iterator[Planted]:
    """Yield one mistake made in every region that the same lines make: an activation's slope, in all layers."""
    alike: dict[tuple[Any, ...], list[Region]] = {}
    for region in regions(replays):
        if region.diagonal:
            key = tuple((operation.name, operation.place) for operation in region.operations)
            alike.setdefault(key, []).append(region)
    for group in alike.values():
        if not 2 <= len(group) <= 8 or replays.late:
            continue
        ordered = sorted(group, key=lambda region: -region.end)  # the last layer is undone first
        kinds = [list(_own_mistakes(replays, region)) for region in ordered]
        for mistakes in zip(*kinds, strict=True):
            replays.pay(len(group))
            code, words, cost, _ = mistakes[0]
            predict = _in_all(ordered, [mistake[3] for mistake in mistakes])
            yield Planted(code, f"in every layer, {words}", cost + 0.1, predict, ordered[0].operations[-1])


def _in_all(ordered: list[Region], makes: list[Make]) -> Predict:
    def predict(replayed: Replay) -> Mapping[str, Array] | None:
        seeds: dict[int, Any] = {}
        now = replayed
        for region, make in zip(ordered, makes, strict=True):
            if region.end not in now.gradients:
                return None
            wrong = make(now)
            if wrong is None:
                return None
            seeds[region.start] = (
                seeds.get(region.start, 0) + wrong - region.flow(now, now.gradients[region.end])
            )
            gradients = cotangents(now.recording, now.values, now.upstream, seeds=seeds)
            now = replace(now, gradients=gradients)
        return now.named(now.gradients)

    return predict


def _own_mistakes(replays: Replays, region: Region) -> Iterator[Mistake]:
    """Yield the mistakes in a region's slope that need no other value than its own two."""
    end, start = replays.label(region.end), replays.label(region.start)

    def at_end(replayed: Replay) -> Any:
        return region.slope_at(replayed, replayed.values[region.end]) * replayed.gradients[region.end]

    yield "missing-local-derivative", f"the slope from {start} to {end} is left out", 1.2, region.skipped
    yield "wrong-evaluation-point", f"the slope from {start} to {end} is taken at {end}", 1.3, at_end
    yield "extra-term", f"the slope from {start} to {end} is multiplied in twice", 1.4, region.twice
    for value in (region.start, region.end):
        for text, formula in FORMULAS.items():
            words = f"the slope from {start} to {end} is taken to be {text.format(replays.label(value))}"
            yield "wrong-local-derivative", words, 1.6, _formula_for_slope(region, value, formula)


def _instead(region: Region, make: Make) -> Predict:
    def predict(replayed: Replay) -> Mapping[str, Array] | None:
        wrong = make(replayed)
        if wrong is None:
            return None
        return replayed.with_added(
            {region.start: wrong - region.flow(replayed, replayed.gradients[region.end])}
        )

    return predict


def _mistakes(replays: Replays, region: Region) -> Iterator[Mistake]:
    end, start = replays.label(region.end), replays.label(region.start)
    size = 0.02 * len(region.operations)

    words = f"the gradient of {end} is handed on to {start} unchanged: the slope between is left out"
    yield "missing-local-derivative", words, (1.2 if region.diagonal else 1.7) + size, region.skipped
    if region.diagonal:
        yield from _slopes(replays, region, start, end, size)
    elif np.size(replays.first.values[region.start]) <= LARGEST:
        yield from _matrices(region, start, end, size)
        yield from _scaled_after(replays, region, start, end, size)
    yield from _formulas(replays, region, start, end, size)


def _slopes(replays: Replays, region: Region, start: str, end: str, size: float) -> Iterator[Mistake]:
    yield "extra-term", f"the slope from {start} to {end} is multiplied in twice", 1.4 + size, region.twice
    if not _depends(replays, region):
        return
    shape = np.shape(replays.first.values[region.start])
    for other, value in enumerate(replays.first.values):
        if other == region.start or np.shape(value) != shape or np.asarray(value).dtype.kind != "f":
            continue

        def elsewhere(replayed: Replay, other: int = other) -> Any:
            return region.slope_at(replayed, replayed.values[other]) * replayed.gradients[region.end]

        words = f"the slope from {start} to {end} is taken at {replays.label(other)}, not at {start}"
        yield "wrong-evaluation-point", words, 1.35 + size, elsewhere


def _depends(replays: Replays, region: Region) -> bool:
    """Whether the slope of a region depends on where it is taken."""
    here = region.slope_at(replays.first, replays.first.values[region.start])
    with np.errstate(all="ignore"):
        there = region.slope_at(replays.first, np.asarray(replays.first.values[region.start]) * 0.5 + 0.1)
    return not agree(np.asarray(there), np.asarray(here))


def _matrices(region: Region, start: str, end: str, size: float) -> Iterator[Mistake]:
    def matrix(replayed: Replay) -> Array:
        return jacobian(replayed.recording, replayed.values, region.start, region.end)

    def diagonal(replayed: Replay) -> Any:
        return (
            np.diag(matrix(replayed)).reshape(np.shape(replayed.values[region.end]))
            * replayed.gradients[region.end]
        )

    def turned(replayed: Replay) -> Any:
        gradient = np.asarray(replayed.gradients[region.end])
        return (matrix(replayed) @ gradient.ravel()).reshape(gradient.shape)

    yield (
        "missing-term",
        f"of the Jacobian from {start} to {end} only the diagonal is there",
        1.1 + size,
        diagonal,
    )
    yield "transposed", f"the Jacobian from {start} to {end} is used, not its transpose", 1.3 + size, turned


def _scaled_after(replays: Replays, region: Region, start: str, end: str, size: float) -> Iterator[Mistake]:
    """Multiply by a factor of the end behind the region rather than before it: where it has entries of others."""
    recording, shape = replays.recording, np.shape(replays.first.values[region.start])
    for operation, k in recording.readers.get(region.end, ()):
        factor = operation.inputs[1 - k] if len(operation.inputs) == 2 else region.end
        if (
            operation.name != "multiply"
            or factor == region.end
            or operation.output not in replays.first.gradients
        ):
            continue
        if (
            np.shape(replays.first.values[factor]) != shape
            or np.shape(replays.first.values[operation.output]) != shape
        ):
            continue

        def after(replayed: Replay, factor: int = factor, output: int = operation.output) -> Any:
            return region.flow(replayed, replayed.gradients[output]) * replayed.values[factor]

        label = replays.label(factor)
        words = f"the gradient of {start} is multiplied by {label} after what leads to {end} is undone, not before"
        yield "wrong-evaluation-point", words, 1.4 + size, after


def _own_slopes(replays: Replays, region: Region) -> dict[str, int]:
    """Return the formulas that are the slope of a diagonal region, each with the end that it is a formula of."""
    if not region.diagonal:
        return {}
    values = replays.first.values
    slope = region.flow(replays.first, np.ones(np.shape(values[region.end])))
    with np.errstate(all="ignore"):
        return {
            text: end
            for text, formula in FORMULAS.items() for end in (region.start, region.end)
            if agree(np.asarray(formula(np.asarray(values[end])), float), slope)
        }  # fmt: skip


def _formulas(replays: Replays, region: Region, start: str, end: str, size: float) -> Iterator[Mistake]:
    """Yield another formula for the slope: of the input, of the output, or of any value of the same shape."""
    own = _own_slopes(replays, region)
    for value in _alike(replays, region)[:12]:
        here = np.asarray(replays.first.values[value])
        label, far = replays.label(value), 0.0 if value in (region.start, region.end) else 0.2
        for text, formula in FORMULAS.items():
            if _is_constant(formula, here):
                continue  # no more than a constant here: it shows nothing
            words = f"the slope from {start} to {end} is taken to be {text.format(label)}"
            code, cost = "wrong-local-derivative", 1.6
            if own.get(text, value) != value:
                words += f", and it is {text.format(replays.label(own[text]))}"
                code, cost = "wrong-evaluation-point", 1.35
            yield code, words, cost + far + size, _formula_for_slope(region, value, formula)
            words = f"the gradient of {start} has a factor too many: {text.format(label)}"
            # of the slope's own value it is part of a formula for it, unless it is all of it: the slope once more
            part = region.diagonal and not far and text not in own
            code = "wrong-local-derivative" if part else "extra-term"
            yield code, words, 1.7 + far + size, _formula_as_factor(region, value, formula)


def _alike(replays: Replays, region: Region) -> list[int]:
    """Return the values of a region's shape, its own two first."""
    values = replays.first.values
    shape = np.shape(values[region.start])
    same = [i for i, v in enumerate(values) if np.shape(v) == shape and np.asarray(v).dtype.kind == "f"]
    return sorted(same, key=lambda i: i not in (region.start, region.end))


def _is_constant(formula: Formula, here: Array) -> bool:
    with np.errstate(all="ignore"):
        found = formula(here)
    return bool(np.all(found == np.ravel(found)[0]))


def _formula_for_slope(region: Region, value: int, formula: Formula) -> Make:
    return lambda replayed: (
        formula(np.asarray(replayed.values[value])) * np.asarray(replayed.gradients[region.end])
    )


def _formula_as_factor(region: Region, value: int, formula: Formula) -> Make:
    return lambda replayed: (
        formula(np.asarray(replayed.values[value])) * region.flow(replayed, replayed.gradients[region.end])
    )
