"""Mistakes in the derivative of a region: left out, twice, at another point, its diagonal only, another formula for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints, jacobian
from handgrad.checking.diagnosis.formulas import FORMULAS, Formula
from handgrad.checking.diagnosis.guess import agree
from handgrad.checking.diagnosis.planted import Planted, Predict
from handgrad.checking.diagnosis.regions import LARGEST, Reach, Region, reach, regions
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.subject import Array

TRY = 40.0  # microseconds to look at a mistake


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
            gradients = adjoints(now.recording, now.values, now.upstream, seeds=seeds)
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
        factors = np.diag(matrix(replayed)).reshape(np.shape(replayed.values[region.end]))
        return factors * replayed.gradients[region.end]

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
            for text, formula in FORMULAS.items()
            for end in (region.start, region.end)
            if agree(np.asarray(formula(np.asarray(values[end])), float), slope)
        }


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
