"""What every backward must keep to, whatever it computes: it changes no argument, and returns the same when called again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from handgrad.checking.input_draws import Source, fresh
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, copy_of, seeded
from handgrad.checking.verdict.analytic import is_slow
from handgrad.checking.verdict.comparison import Comparison, GradientSample, compare, numerical_gradient
from handgrad.checking.verdict.directional import outputs_of
from handgrad.finite_differences import (
    NumericalJacobian,
    Vector,
    directional_derivatives,
    numerical_jacobian,
    scale_of,
)
from handgrad.tolerance import EPS, close, reordered, rounding_error

UPSTREAM = "grad_output"
CALLS = 3  # of backward, which return the same
LONGEST_STATE = 10_000  # characters of one name's value
UNEVEN = (
    1e-3  # of the largest entry: what a division by a norm, and a small number added to it, may be off by
)
MOST_TIES = 8  # values at which entries tie that are looked at
APART = 2.0**-7  # of a typical entry: as far ties are moved together
TIED = 1e-3  # of the gradients of entries that tie: a share too many is far more
# By how much upstream gradients are scaled: losses are averaged over many rows, and scaled up.
FACTORS = {2.0: "twice", 2.0**-20: "a millionth of", 2.0**10: "a thousand times"}


@dataclass(frozen=True)
class Violation:
    """A part of the contract that backward does not keep."""

    kind: Literal[
        "mutated",  # it, or forward, changed an array it was given
        "random",  # it draws random numbers
        "stale",  # another answer when called again
        "affine",  # zero upstream does not give zero
        "uneven",  # a multiple of the upstream gradient does not give that multiple
        "squared",  # twice the upstream gradient gives four times the gradient: it is multiplied twice
        "tied",  # entries that tie get another sum of gradients than moving them together has
    ]
    argument: str  # the array that changed, or whose gradient did
    evidence: str


def violations(subject: Subject, sample: GradientSample) -> list[Violation]:
    """Return every part of the contract that backward breaks at a sample."""
    few = is_slow(subject, sample.inputs)
    mutations, called = _mutations(subject, sample)
    calls = [called] if few else [subject.run_backward(sample.upstream, sample.inputs) for _ in range(CALLS)]
    again = [*_repetition(subject, sample, calls), *_between(subject, sample)]
    return [*mutations, *again, *([] if again else _linearity(subject, sample, few=few))]


def ties(subject: Subject, comparison: Comparison) -> Iterator[Violation]:
    """Look whether entries that tie get the derivative of moving them together.

    Of each alone every value between its two sides is right; but where two entries are the largest, the maximum moves with
    both of them once, and not twice. Kinks at a fixed place, as ReLU's at 0, are no ties: there conventions need not agree.
    """
    numerical, sample = comparison.numerical, comparison.samples[0]
    flat = np.concatenate([part.ravel() for part in sample.upstream])
    for name, jacobian in numerical.jacobians.items():
        value, got = sample.inputs[name], sample.got[name]
        if (
            not isinstance(jacobian, NumericalJacobian)
            or got.shape != value.shape
            or name in comparison.wrong
        ):
            continue
        kinked = jacobian.kinks.reshape(value.shape)
        values, counts = np.unique(value[kinked], return_counts=True)
        tied = [kinked & (value == each) for each in values[counts > 1][:MOST_TIES]]
        if not tied:
            continue
        function = outputs_of(subject, sample.inputs, name)
        found = directional_derivatives(function, value, np.array(tied, float))
        low, high, error = found.allowed(flat)
        for number, entries in enumerate(tied):
            total, largest = float(got[entries].sum()), float(np.abs(got[entries]).sum())
            off = max(low[number] - total, total - high[number]) - error[number]
            if not found.kinks[number] and off > TIED * largest and _stay_tied(function, value, entries):
                words = f"the {int(entries.sum())} entries of {name} that tie at {value[entries][0]:.4g}"
                right = f"and {float(high[number]):.4g} when they move together"
                yield Violation("tied", name, f"{words} get gradients that sum to {total:.4g}, {right}")
                break


def _stay_tied(function: Vector, value: Array, entries: Array) -> bool:
    """Whether an entry is at a kink also where all that tie have moved together."""
    moved = value + APART * scale_of(value) * entries
    place = tuple(int(k) for k in np.argwhere(entries)[0])
    return bool(numerical_jacobian(function, moved, [place]).kinks.any())


def module_state(function: object) -> dict[str, str]:
    """Return what a function's module holds in dicts, lists, sets and arrays, to see whether calls change it."""
    names = getattr(function, "__globals__", {})
    held = {name: value for name, value in names.items() if isinstance(value, dict | list | set | np.ndarray)}
    return {name: repr(value)[:LONGEST_STATE] for name, value in held.items() if not name.startswith("__")}


def stale_elsewhere(
    subject: Subject, source: Source, arguments: tuple[str, ...], seed: int
) -> list[Violation]:
    """Return the gradients that are wrong at other inputs, where the functions may cache something of the first."""
    try:
        inputs = fresh(source, subject, np.random.default_rng([seed, 2]))
        wrong = compare(subject, numerical_gradient(subject, inputs, arguments, seed)).wrong
    except CheckError:
        return []
    words = "right at the first inputs, wrong at the next: something of the first call is cached"
    return [Violation("stale", name, f"d{name} is {words}") for name in wrong]


def _mutations(subject: Subject, sample: GradientSample) -> tuple[list[Violation], Gradients]:
    """Give forward and backward arrays, compare them afterwards, and return what backward returned too.

    What forward keeps up to date is no violation.
    """
    given = copy_of(sample.inputs)
    subject.run_forward(given, fresh=False)
    found = [*_changed("forward", sample.inputs, given, sample.got)]
    given, upstream = copy_of(sample.inputs), [np.array(part) for part in sample.upstream]
    returned = copy_of(subject.run_backward(upstream, given, fresh=False))
    found += _changed("backward", sample.inputs, given, sample.inputs)
    if not all(map(_same_bits, sample.upstream, upstream)):
        words = "after backward, the upstream gradient it was given has changed"
        found.append(Violation("mutated", UPSTREAM, words))
    return found, returned


def _changed(role: str, inputs: Inputs, given: Inputs, names: Iterable[str]) -> Iterator[Violation]:
    for name in names:
        entries = int(np.sum(inputs[name] != given[name]))
        if entries and not _same_bits(inputs[name], given[name]):
            words = f"after {role}, {entries} of {inputs[name].size} entries of {name} have changed"
            yield Violation("mutated", name, words)


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _repetition(subject: Subject, sample: GradientSample, calls: list[Gradients]) -> Iterator[Violation]:
    """Compare what backward returns when it is called again; more than another order of the same sums is another answer."""

    def run() -> Gradients:
        return subject.run_backward(sample.upstream, sample.inputs)

    def same(name: str, one: Gradients, other: Gradients) -> bool:
        largest = float(sample.bounds[name].size.max(initial=0))
        return name in other and reordered(one[name], other[name], largest)

    for name in sample.got:
        if not all(same(name, sample.got, call) for call in calls):
            differs = f"called twice on the same inputs, d{name} differs"
            if same(name, seeded()(run)(), seeded()(run)()):
                yield Violation("random", name, f"{differs}, as random numbers do")
            else:
                yield Violation("stale", name, f"{differs}: something is cached between calls")


def _between(subject: Subject, sample: GradientSample) -> Iterator[Violation]:
    """Run forward on other inputs too: backward is of the call that it belongs to, whatever another one saved."""
    after_another = getattr(subject.backward, "after_another", None)
    upstream = tuple(map(np.array, sample.upstream))
    found = after_another(upstream, **copy_of(sample.inputs)) if after_another else {}
    for name, gradient in found.items():
        largest = float(sample.bounds[name].size.max(initial=0))
        if name in sample.got and not reordered(sample.got[name], gradient, largest):
            words = "what that saved is used, and not what forward saved for it"
            yield Violation(
                "stale", name, f"another call of forward, on other inputs, changes d{name}: {words}"
            )


def _linearity(subject: Subject, sample: GradientSample, *, few: bool) -> Iterator[Violation]:
    """Look whether the gradient scales with the upstream one, and is zero where that is."""
    arrays = (*subject.inputs.values(), *subject.outputs, *sample.got.values())
    few_digits = rounding_error(*arrays) > EPS  # they do not scale so far
    factors = [factor for factor in FACTORS if factor == 2 or not (few or few_digits)]

    def run(factor: float) -> Gradients:
        return subject.run_backward([factor * part for part in sample.upstream], sample.inputs)

    scaled = {factor: run(factor) for factor in factors}
    is_even = all(_scales(scaled[2.0].get(name), once, 2.0) for name, once in sample.got.items())
    nowhere = {} if few and is_even else run(0.0)
    for name, once in sample.got.items():
        if not np.all(np.isfinite(once)):
            continue
        nothing = nowhere.get(name, np.zeros(1))
        uneven = next((FACTORS[by] for by in factors if not _scales(scaled[by].get(name), once, by)), "")
        largest = float(np.abs(once).max(initial=0))
        if np.all(np.isfinite(nothing)) and not reordered(nothing, np.zeros_like(nothing), largest):
            yield Violation("affine", name, f"zero upstream gives a d{name} that is not zero")
        elif uneven and (twice := scaled[2.0].get(name)) is not None and reordered(twice, 4 * once):
            words = f"twice the upstream gradient gives four times d{name}: it is multiplied twice"
            yield Violation("squared", name, words)
        elif uneven:
            words = f"{uneven} the upstream gradient does not give {uneven} d{name}"
            yield Violation("uneven", name, words)
        elif not np.all(np.isfinite(nothing)):
            yield Violation("affine", name, f"zero upstream gives a d{name} that is not finite")


def _scales(scaled: Array | None, once: Array, factor: float) -> bool:
    """Whether a gradient is that many times another."""
    times = factor * once
    if scaled is None or factor == 2:
        return scaled is not None and reordered(scaled, times)
    return not np.all(np.isfinite(times)) or close(scaled, times, UNEVEN)
