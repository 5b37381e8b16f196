"""A gradient at many other inputs, cheaply: the right one comes from the chain rule over a trace of forward.

A repair may be right at the few inputs that are compared and wrong at others: a threshold that lies between, a number
that is the length of an axis there, a division by what is not zero there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import chain

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import fresh, is_finite_at, jittered, redrawn, shorter
from handgrad.checking.repair.sandbox import Target
from handgrad.checking.subject import Array, CheckError, Inputs, Subject, widened
from handgrad.checking.verdict.analytic import traced
from handgrad.checking.verdict.comparison import Evidence, GradientSample, compare, numerical_gradient
from handgrad.tolerance import close

DRAWS = 24
REDRAWN = 8
FAR = (1.0, 3.0, 6.0)  # times as far away as a jitter is, in turn
ZEROS = 0.3  # the share of an input's entries that are set to zero, to see what is divided by it
SIZES = (2.0**-80, 2.0**80)  # of an upstream gradient
LONGEST = 400  # operations of a trace that is run so often
LARGEST = 20_000  # entries of all inputs
DOUBT = 1e-8  # of the largest entry: what rounding leaves of a gradient that can be judged
CLOSE = 1e-5  # of the largest entry; what is farther off is judged with care


class OtherInputs:
    """Other inputs for a subject, with the right gradients there: of the same sizes, and of others."""

    def __init__(self, evidence: Evidence, *, whole: bool = True) -> None:
        self.subject, self.trace, self.source = evidence.subject, evidence.trace, evidence.source
        self.arguments = evidence.comparisons[0].arguments
        self.whole = whole  # whether labels, masks and targets are others too
        self.inputs = evidence.comparisons[0].numerical.exact
        given = evidence.comparisons[0].samples[0].got
        self._shaped = [name for name in self.arguments if given[name].shape == self.inputs[name].shape]
        self._small = sum(value.size for value in self.inputs.values()) <= LARGEST
        self._generator = np.random.default_rng(0)

    def prepare(self) -> None:
        """Find the right gradients, while forward is as its author wrote it."""
        _ = self.draws, self.zeros, self.sizes

    @cached_property
    def draws(self) -> list[Target]:
        """Inputs of the same sizes with other numbers; those near zero are also drawn about as large as 1."""
        larger = (redrawn(self.inputs, self.arguments, self._generator, 1.0) for _ in range(REDRAWN))
        finite = (inputs for inputs in larger if is_finite_at(self.subject, inputs))
        return [*self.lazily(), *(self._targets(finite, self.trace) if self.can_be_drawn() else ())]

    def _moved(self) -> Iterator[Inputs]:
        for k in range(DRAWS):
            with suppress(CheckError):  # no other inputs were found
                far = FAR[k % len(FAR)]
                yield widened(
                    fresh(self.source, self.subject, self._generator, size=far, whole=self.whole), np.float64
                )

    def lazily(self) -> Iterator[Target]:
        """Yield the draws, and then inputs that have nothing to do with the first."""
        redraws = (redrawn(self.inputs, self.arguments, self._generator) for _ in range(REDRAWN))
        finite = (inputs for inputs in redraws if is_finite_at(self.subject, inputs))
        if self.can_be_drawn():
            yield from self._targets(chain(self._moved(), finite), self.trace)

    def can_be_drawn(self) -> bool:
        """Whether forward is short, and its inputs few: what is drawn takes little time."""
        return self.trace is not None and len(self.trace.operations) <= LONGEST and self._small

    def tied(self) -> bool:
        """Whether backward takes an input that forward does not: what was computed before, and fits no other inputs."""
        moved = jittered(self.inputs, self._generator)
        drawn = redrawn(self.inputs, self.arguments, self._generator, 1.0)
        known = {name: value if np.any(value) else drawn[name] for name, value in self.inputs.items()}
        before = self.subject.run_forward(known)  # weights of 0 would hide what forward takes
        for name in (name for name in self.inputs if name not in self.arguments):
            with suppress(CheckError):
                inputs = {**known, name: moved[name]}
                same = all(map(np.array_equal, before, self.subject.run_forward(inputs)))
                upstream = [np.ones_like(part) for part in before]
                given = [self.subject.run_backward(upstream, each) for each in (known, inputs)]
                if same and any(
                    not np.array_equal(given[0][each], given[1][each], equal_nan=True) for each in given[0]
                ):
                    return True
        return False

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
        """Inputs of other sizes, where forward and backward take them: each length is one less wherever it occurs."""
        return (
            [each for each in self._targets(self._shorter(), None) if self._fits(each)] if self._small else []
        )

    def _shorter(self) -> list[Inputs]:
        """Return inputs of other sizes: with a length less everywhere, and with one argument smaller than the others.

        Square matrices lose a column each: what a layer takes and what it returns are as many by chance.
        Labels, masks and targets are as many as ever: backward need not know that some are missing.
        """
        wide = widened(self.inputs, np.float64)
        alone = (
            {
                **wide,
                name: np.take(wide[name], range(n - 1), axis=axis),
            }  # an image, and not the window over it
            for name in self.arguments
            for axis, n in enumerate(wide[name].shape)
            if n > 1
        )
        squares = [
            name for name, each in wide.items() if each.ndim == 2 and each.shape == each.T.shape > (1, 1)
        ]
        fewer = {**wide, **{name: wide[name][:, :-1] for name in squares}}
        return [*all_shorter(self.inputs), *alone, *[fewer] * (len(squares) > 1)]

    def _fits(self, target: Target) -> bool:
        """Whether backward as its author wrote it takes the sizes, and returns gradients of them where it did at first.

        An optimiser's state and arrays that are filled are of the first sizes, and a bias of one number only broadcasts.
        """
        with suppress(CheckError):
            given = self.subject.run_backward(target.upstream, target.inputs)
            return all(given[name].shape == target.inputs[name].shape for name in self._shaped)
        return False

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
            drawn = (self._generator.normal(size=output.shape) for output in outputs)
            upstream = [self.subject.scale * part for part in drawn]
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
                if target.met(given) != target.gradients.keys() and self._is_stable(target):
                    numerical = numerical_gradient(self.subject, target.inputs, self.arguments, 0)
                    if compare(candidate, numerical).wrong:
                        return False
        except CheckError:
            return False
        return True

    def _is_stable(self, target: Target) -> bool:
        """Whether a wider type gives the same gradients: not where log(1 - p) has lost the digits of a small 1 - p."""
        if self.trace is None:
            return True
        with suppress(CheckError, ValueError, IndexError, TypeError):
            values = self.trace.replay(widened(target.inputs, np.longdouble))
            ends = [values[k] for k in self.trace.outputs]
            if not all(map(close, ends, self.subject.run_forward(target.inputs))):  # another branch
                return True
            found = adjoints(self.trace, values, target.upstream)
            wide = {name: np.asarray(found.get(self.trace.inputs[name], 0.0)) for name in self.arguments}
            off = {
                name: np.abs(wide[name] - target.gradients[name]).max(initial=0) for name in self.arguments
            }
            return all(off[name] <= DOUBT * np.abs(wide[name]).max(initial=0) for name in self.arguments)
        return True

    def is_finite(self, candidate: Subject) -> bool:
        """Whether another backward is finite at zeros, where the right gradient is: it divides by no input."""
        given = (candidate.run_backward(target.upstream, target.inputs) for target in self.zeros)
        return all(map(_finite, (gradient for gradients in given for gradient in gradients.values())))


def is_proportional(candidate: Subject, sample: GradientSample) -> bool:
    """Whether gradients are proportional to upstream ones far smaller and larger than any that a threshold is set at."""
    given = candidate.run_backward(sample.upstream, sample.inputs)
    for size in SIZES:
        scaled = candidate.run_backward([size * part for part in sample.upstream], sample.inputs)
        if not all(close(scaled[name], size * gradient) for name, gradient in given.items()):
            return False
    return True


def all_shorter(inputs: Inputs) -> list[Inputs]:
    """Return the inputs with each length of an axis less by one, or half of it, no sizes twice."""
    wide = widened(inputs, np.float64)
    lengths = sorted({n for value in inputs.values() for n in value.shape if n > 1})
    halves = [(n, n // 2) for n in lengths if n > 2 and n % 2 == 0]  # windows divide a length
    fewer = [*((n, 1) for n in lengths), *halves]
    every = (less for length, by in fewer for less in shorter(wide, length, by))
    found = {tuple(value.shape for value in less.values()): less for less in (wide, *every)}
    return list(found.values())[1:]


def _finite(value: Array) -> bool:
    return bool(np.all(np.isfinite(value)))
