"""A gradient at many other inputs, cheaply: its right values come from the chain rule over a recording of forward.

A repair may be right at the few inputs that are judged and wrong elsewhere: a threshold that lies between, a number
that is the length of an axis there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.numerical.analytic import traced
from handgrad.checking.numerical.comparison import Evidence, compare, numerical_gradient
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, widened
from handgrad.checking.subject.draws import jittered, shorter

DRAWS = 24
FAR = 3.0  # every other draw is that much farther away
LONGEST = 400  # operations of a recording that is run so often
LARGEST = 20_000  # entries of all inputs
CLOSE = 1e-5  # of the largest entry; what is farther off is judged with care


@dataclass(frozen=True)
class Spot:
    """Inputs, an upstream gradient, and the gradients that are right there."""

    inputs: Inputs
    upstream: list[Array]
    right: Gradients


class Elsewhere:
    """Other inputs for a subject: of the same sizes, and of others."""

    def __init__(self, evidence: Evidence) -> None:
        self.subject, self.evidence = evidence.subject, evidence
        self.arguments = evidence.comparisons[0].arguments
        self.inputs = evidence.comparisons[0].numerical.exact
        self._generator = np.random.default_rng(0)

    @cached_property
    def draws(self) -> list[Spot]:
        """Other numbers."""
        recording = self.evidence.recording
        if recording is None or len(recording.operations) > LONGEST or self._entries > LARGEST:
            return []
        sizes = (FAR if k % 2 else 1.0 for k in range(DRAWS))
        moved = [jittered(self.inputs, self._generator, size) for size in sizes]
        return [spot for inputs in moved if (spot := self._spot(inputs, recording)) is not None]

    @cached_property
    def sizes(self) -> list[Spot]:
        """Other sizes, where forward takes them: each length is one less wherever it stands."""
        if self._entries > LARGEST:
            return []
        spots = (self._spot(inputs, None) for inputs in all_shorter(self.inputs))
        return [spot for spot in spots if spot is not None]

    @property
    def _entries(self) -> int:
        return sum(value.size for value in self.inputs.values())

    def _spot(self, inputs: Inputs, recording: ForwardTrace | None) -> Spot | None:
        """Return what is right at some inputs, or None where forward does not run, is not finite or not followed."""
        try:
            outputs = self.subject.run_forward(inputs)
            if not all(np.all(np.isfinite(output)) for output in outputs):
                return None
            values = recording.replay(inputs) if recording else []
            ends = [values[i] for i in recording.outputs] if recording else []
            if recording is None or not all(map(_alike, ends, outputs)):  # another branch
                recording = traced(self.subject, inputs)
                values = recording.values if recording else []
        except (CheckError, ValueError, IndexError):
            return None
        if recording is None:
            return None
        upstream = [self._generator.normal(size=output.shape) for output in outputs]
        found = adjoints(recording, values, upstream)
        right = {
            name: np.asarray(found.get(recording.inputs[name], 0.0)) + np.zeros(inputs[name].shape)
            for name in self.arguments
        }
        return Spot(inputs, upstream, right) if all(map(_finite, right.values())) else None

    def holds(self, candidate: Subject, spots: list[Spot]) -> bool:
        """Whether another backward is right there; what looks wrong is judged with care, for there are kinks."""
        return all(self._near(candidate, spot) or self._judged(candidate, spot) for spot in spots)

    def _near(self, candidate: Subject, spot: Spot) -> bool:
        try:
            given = candidate.run_backward(spot.upstream, spot.inputs)
        except CheckError:
            return False
        return all(
            name in given
            and given[name].shape == right.shape
            and bool(np.all(np.abs(given[name] - right) <= CLOSE * np.abs(right).max(initial=0)))
            for name, right in spot.right.items()
        )

    def _judged(self, candidate: Subject, spot: Spot) -> bool:
        try:
            return not compare(
                candidate, numerical_gradient(self.subject, spot.inputs, self.arguments, 0)
            ).wrong
        except CheckError:
            return False


def all_shorter(inputs: Inputs) -> Iterator[Inputs]:
    """Yield the inputs with each length of an axis less by one, no sizes twice."""
    wide = widened(inputs, np.float64)
    seen = [_shapes(wide)]
    for length in sorted({n for value in inputs.values() for n in value.shape if n > 1}):
        for less in shorter(wide, length):
            if _shapes(less) not in seen:
                seen.append(_shapes(less))
                yield less


def _shapes(inputs: Inputs) -> list[tuple[int, ...]]:
    return [value.shape for value in inputs.values()]


def _alike(one: Array, other: Array) -> bool:
    return np.shape(one) == other.shape and bool(np.allclose(one, other, rtol=1e-6, equal_nan=True))


def _finite(value: Array) -> bool:
    return bool(np.all(np.isfinite(value)))
