"""A gradient at many other inputs, cheaply: the right one comes from the chain rule over a trace of forward.

A repair may be right at the few inputs that are compared and wrong at others: a threshold that lies between, a number
that is the length of an axis there, a division by what is not zero there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.draws import jittered, shorter
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.repair.sandbox import Target
from handgrad.checking.subject import Array, CheckError, Inputs, Subject, widened
from handgrad.checking.verdict.analytic import traced
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient
from handgrad.tolerance import close

DRAWS = 24
FAR = 3.0  # every other draw is that much farther away
ZEROS = 0.3  # the share of an input's entries that are set to zero, to see what is divided by it
LONGEST = 400  # operations of a trace that is run so often
LARGEST = 20_000  # entries of all inputs
CLOSE = 1e-5  # of the largest entry; what is farther off is judged with care


class OtherInputs:
    """Other inputs for a subject, with the right gradients there: of the same sizes, and of others."""

    def __init__(self, evidence: Evidence) -> None:
        self.subject, self.evidence = evidence.subject, evidence
        self.arguments = evidence.comparisons[0].arguments
        self.inputs = evidence.comparisons[0].numerical.exact
        self._generator = np.random.default_rng(0)

    @cached_property
    def draws(self) -> list[Target]:
        """Inputs of the same sizes with other numbers."""
        recording = self.evidence.recording
        if recording is None or len(recording.operations) > LONGEST or self._entries > LARGEST:
            return []
        moved = (jittered(self.inputs, self._generator, FAR if k % 2 else 1.0) for k in range(DRAWS))
        every = (self._target(inputs, recording) for inputs in moved)
        return [target for target in every if target is not None]

    @cached_property
    def zeros(self) -> list[Target]:
        """The inputs with the smallest entries of one of them zero, where it has both signs."""
        found = []
        for name in self.arguments if self.draws else ():
            value = self.inputs[name]
            if value.ndim and np.any(value < 0) and np.any(value > 0):
                small = np.abs(value) <= np.quantile(np.abs(value), ZEROS)
                found.append(
                    self._target({**self.inputs, name: np.where(small, 0.0, value)}, self.evidence.recording)
                )
        return [target for target in found if target is not None]

    @cached_property
    def sizes(self) -> list[Target]:
        """Inputs of other sizes, where forward takes them: each length is one less wherever it occurs."""
        if self._entries > LARGEST:
            return []
        every = (self._target(inputs, None) for inputs in all_shorter(self.inputs))
        return [target for target in every if target is not None]

    @property
    def _entries(self) -> int:
        return sum(value.size for value in self.inputs.values())

    def _target(self, inputs: Inputs, recording: ForwardTrace | None) -> Target | None:
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
        near = {name: CLOSE * np.abs(value).max(initial=0) for name, value in right.items()}
        return Target(inputs, upstream, right, near) if all(map(_finite, right.values())) else None

    def is_right(self, candidate: Subject, targets: list[Target]) -> bool:
        """Whether another backward is right there; what is not near is compared with care, for there are kinks."""
        return all(self._near(candidate, target) or self._compared(candidate, target) for target in targets)

    def is_finite(self, candidate: Subject) -> bool:
        """Whether another backward is finite at zeros, where the right gradient is: it divides by no input."""
        try:
            given = (candidate.run_backward(target.upstream, target.inputs) for target in self.zeros)
            return all(map(_finite, (gradient for gradients in given for gradient in gradients.values())))
        except CheckError:
            return False

    def _near(self, candidate: Subject, target: Target) -> bool:
        try:
            return (
                target.met(candidate.run_backward(target.upstream, target.inputs)) == target.gradients.keys()
            )
        except CheckError:
            return False

    def _compared(self, candidate: Subject, target: Target) -> bool:
        try:
            numerical = numerical_gradient(self.subject, target.inputs, self.arguments, 0)
            return not compare(candidate, numerical).wrong
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
    return close(one, other)


def _finite(value: Array) -> bool:
    return bool(np.all(np.isfinite(value)))
