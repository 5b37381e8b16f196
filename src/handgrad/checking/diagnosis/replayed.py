"""Forward as elementary operations, replayed at every inputs of the evidence, with the right chain rule over it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.effort import Effort
from handgrad.checking.forward_trace import ForwardTrace, Operation, UntraceableError
from handgrad.checking.numerical.comparison import Evidence, GradientSample
from handgrad.checking.subject import Array


@dataclass(frozen=True)
class Replay:
    """One sample of the evidence with every value of forward, and the right gradient of each.

    Attributes
    ----------
    recording
        The operations.
    sample
        What backward gave for one upstream gradient at some inputs.
    values, gradients
        By the numbers of the recording.
    """

    recording: ForwardTrace
    sample: GradientSample
    values: list[Any]
    gradients: dict[int, Any]

    @property
    def upstream(self) -> list[Array]:
        """The upstream gradient, in float64."""
        return [np.asarray(part, np.float64) for part in self.sample.upstream]

    def named(self, found: Mapping[int, Any]) -> dict[str, Array]:
        """Return the gradients of the arguments from those of all values."""
        return {
            name: np.asarray(found.get(self.recording.inputs[name], 0.0)) + np.zeros(self.shape(name))
            for name in self.sample.got
            if name in self.recording.inputs
        }

    def with_added(self, start: Mapping[int, Any]) -> dict[str, Array]:
        """Return the arguments' gradients when gradients are added at some values."""
        return {name: self.sample.expected(name) + added for name, added in self.spread(start).items()}

    def spread(self, start: Mapping[int, Any]) -> dict[str, Array]:
        """Return what gradients added at some values add to every argument's."""
        return self.named(adjoints(self.recording, self.values, None, seeds=start))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an argument."""
        return self.sample.inputs[name].shape

    def off(self, name: str) -> Array:
        """Return what backward gave beyond the right gradient of an argument."""
        return np.asarray(self.sample.got[name] - self.sample.expected(name), np.float64)


@dataclass
class Replays:
    """Every sample, replayed; what has been spent on looking at them, and how much may be."""

    recording: ForwardTrace
    all: tuple[Replay, ...]
    wrong: tuple[str, ...]  # the arguments that are wrong, and of the right shape
    effort: Effort = field(default_factory=Effort)
    until: float = float("inf")
    _ancestors: dict[int, frozenset[int]] = field(default_factory=dict)

    @property
    def late(self) -> bool:
        """Whether enough has been done."""
        return self.effort.spent > self.until

    def pay(self, times: int = 1) -> None:
        """Count that gradients were carried through forward."""
        self.effort.spend(times * self._carrying)

    @cached_property
    def _carrying(self) -> float:
        """How long it takes, in microseconds of a usual machine."""
        sizes = (getattr(self.first.values[o.output], "size", 1) for o in self.recording.operations)
        return sum(12 + 0.02 * size for size in sizes)

    def ancestors(self, value: int) -> frozenset[int]:
        """Return the values that a value is computed from, itself among them."""
        if not self._ancestors:
            for index in range(len(self.recording.values)):
                self._ancestors[index] = frozenset((index,))
            for operation in self.recording.operations:
                parts = (self._ancestors[i] for i in operation.inputs)
                self._ancestors[operation.output] = frozenset((operation.output,)).union(*parts)
        return self._ancestors[value]

    @property
    def right(self) -> tuple[str, ...]:
        """The arguments that are right, and must stay so."""
        sample = self.first.sample
        return tuple(name for name in sample.got if name not in self.wrong and not sample.wrong(name).any())

    @property
    def first(self) -> Replay:
        """The sample explanations are tried on first."""
        return self.all[0]

    def place(self, operation: Operation | None) -> str:
        """Return the line of the user's source an operation belongs to."""
        if operation is None:
            return ""
        return f"line {operation.place[1]}: {self.recording.source(operation)}"

    def label(self, value: int) -> str:
        """Return the user's name of a value, or what it is."""
        name = self.recording.names.get(value) or self.recording.texts.get(value)
        if name:
            return name
        made = self.recording.producer.get(value)
        return f"the {made.name} in line {made.place[1]}" if made else "a constant"


def replay(evidence: Evidence) -> Replays:
    """Record forward and replay it for the whole evidence; raises `UntraceableError` when it cannot be followed."""
    recording = evidence.recording
    if recording is None:
        raise UntraceableError("forward cannot be followed")
    return Replays(recording, tuple(_replays(evidence, recording)), tuple(_shaped(evidence)))


def _replays(evidence: Evidence, recording: ForwardTrace) -> Iterator[Replay]:
    for position, comparison in enumerate(evidence.comparisons):
        values = recording.values if position == 0 else recording.replay(comparison.numerical.exact)
        for sample in comparison.samples:
            upstream = [np.asarray(part, np.float64) for part in sample.upstream]
            gradients = adjoints(recording, values, upstream)
            yield Replay(recording, sample, values, gradients)


def _shaped(evidence: Evidence) -> Iterator[str]:
    for name in evidence.wrong:
        if all(got.shape == right.shape and np.all(np.isfinite(got)) for got, right in evidence.pairs(name)):
            yield name
