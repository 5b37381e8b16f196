"""A gradient at many other inputs, cheaply: the right one comes from the chain rule over a trace of forward.

A repair may be right at the few inputs that are compared and wrong at others: a threshold that lies between, a number
that is the length of an axis there, a division by what is not zero there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import jittered, shorter
from handgrad.checking.repair.sandbox import Target
from handgrad.checking.subject import Array, CheckError, Inputs, Subject, widened
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient
from handgrad.checking.verdict.directional import traced
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
        self.subject, self.trace = evidence.subject, evidence.trace
        self.arguments = evidence.comparisons[0].arguments
        self.inputs = evidence.comparisons[0].numerical.exact
        self._small = sum(value.size for value in self.inputs.values()) <= LARGEST
        self._generator = np.random.default_rng(0)

    @cached_property
    def draws(self) -> list[Target]:
        """Inputs of the same sizes with other numbers."""
        if self.trace is None or len(self.trace.operations) > LONGEST or not self._small:
            return []
        moved = (jittered(self.inputs, self._generator, FAR if k % 2 else 1.0) for k in range(DRAWS))
        return list(self._targets(moved, self.trace))

    @cached_property
    def zeros(self) -> list[Target]:
        """The inputs with the smallest entries of one of them zero, where it has both signs."""
        arrays = {name: self.inputs[name] for name in self.arguments if self.draws and self.inputs[name].ndim}
        small = {
            name: np.abs(value) <= np.quantile(np.abs(value), ZEROS)
            for name, value in arrays.items()
            if np.any(value < 0) and np.any(value > 0)
        }
        zeroed = (self.inputs | {name: np.where(small[name], 0.0, arrays[name])} for name in small)
        return list(self._targets(zeroed, self.trace))

    @cached_property
    def sizes(self) -> list[Target]:
        """Inputs of other sizes, where forward takes them: each length is one less wherever it occurs."""
        return list(self._targets(all_shorter(self.inputs), None)) if self._small else []

    def _targets(self, every: Iterable[Inputs], trace: ForwardTrace | None) -> Iterator[Target]:
        """Yield what is right at some inputs, but where forward does not run, is not finite or not traced."""
        for inputs in every:
            try:
                outputs = self.subject.run_forward(inputs)
                if not all(map(_finite, outputs)):
                    continue
                followed, values = trace, trace.replay(inputs) if trace else []
                ends = [values[i] for i in trace.outputs] if trace else []
                if not ends or not all(map(close, ends, outputs)):  # another branch
                    followed = traced(self.subject, inputs)
                    values = followed.values if followed else []
            except (CheckError, ValueError, IndexError):
                continue
            if followed is None:
                continue
            upstream = [self._generator.normal(size=output.shape) for output in outputs]
            found = adjoints(followed, values, upstream)
            right = {
                name: np.asarray(found.get(followed.inputs[name], 0.0)) + np.zeros(inputs[name].shape)
                for name in self.arguments
            }
            near = {name: CLOSE * np.abs(value).max(initial=0) for name, value in right.items()}
            if all(map(_finite, right.values())):
                yield Target(inputs, upstream, right, near)

    def is_right(self, candidate: Subject, targets: list[Target]) -> bool:
        """Whether another backward is right there; what is not near is compared with care, for there are kinks."""
        try:
            for target in targets:
                given = candidate.run_backward(target.upstream, target.inputs)
                if target.met(given) != target.gradients.keys():
                    numerical = numerical_gradient(self.subject, target.inputs, self.arguments, 0)
                    if compare(candidate, numerical).wrong:
                        return False
        except CheckError:
            return False
        return True

    def is_finite(self, candidate: Subject) -> bool:
        """Whether another backward is finite at zeros, where the right gradient is: it divides by no input."""
        given = (candidate.run_backward(target.upstream, target.inputs) for target in self.zeros)
        return all(map(_finite, (gradient for gradients in given for gradient in gradients.values())))


def all_shorter(inputs: Inputs) -> list[Inputs]:
    """Return the inputs with each length of an axis less by one, no sizes twice."""
    wide = widened(inputs, np.float64)
    lengths = sorted({n for value in inputs.values() for n in value.shape if n > 1})
    every = (less for length in lengths for less in shorter(wide, length))
    found = {tuple(value.shape for value in less.values()): less for less in (wide, *every)}
    return list(found.values())[1:]


def _finite(value: Array) -> bool:
    return bool(np.all(np.isfinite(value)))
