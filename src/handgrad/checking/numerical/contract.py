"""What every backward must keep to, whatever it computes: it changes nothing, and says the same when asked again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from handgrad.checking.numerical.comparison import GradientSample, compare, numerical_gradient
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, copy_of
from handgrad.checking.subject.draws import Source, fresh
from handgrad.tolerance import EPS, close, reordered, rounding_error

UPSTREAM = "grad_output"
LONGEST_STATE = 10_000  # characters of one name's value
UNEVEN = (
    1e-3  # of the largest entry: what a division by a norm, and a small number added to it, may be off by
)
FACTORS = {2.0**-20: "a millionth of", 2.0**10: "a thousand times"}
"""By how much more upstream gradients are scaled: losses are averaged over many rows, and scaled up."""


@dataclass(frozen=True)
class Violation:
    """A rule of the contract that backward does not keep.

    Attributes
    ----------
    kind
        "mutated" (it, or forward, changed an array it was given), "random" (fresh randomness), "stale" (another answer when
        called again), "affine" (zero upstream does not give zero) or "uneven" (a multiple does not give that multiple).
    argument
        The array that changed, or whose gradient did.
    evidence
        In words.
    """

    kind: str
    argument: str
    evidence: str


def violations(subject: Subject, sample: GradientSample) -> list[Violation]:
    """Return every rule of the contract that backward breaks at a sample."""
    inputs = sample.inputs
    found = list(_mutations(subject, inputs, sample))
    again = list(_repetition(subject, inputs, sample))
    found += again
    if not again:
        found += _linearity(subject, inputs, sample)
    return found


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
    words = "right at the first inputs, wrong at the next: something of the first call is kept"
    return [Violation("stale", name, f"d{name} is {words}") for name in wrong]


def _mutations(subject: Subject, inputs: Inputs, sample: GradientSample) -> Iterator[Violation]:
    """Give forward and backward arrays and compare them afterwards; what forward keeps up to date is no violation."""
    given = copy_of(inputs)
    subject.run_forward(given, fresh=False)
    yield from _changed("forward", inputs, given, sample.got)
    given, first = copy_of(inputs), [np.array(part) for part in sample.upstream]
    subject.run_backward(first, given, fresh=False)
    yield from _changed("backward", inputs, given, inputs)
    if not all(_same_bits(a, b) for a, b in zip(sample.upstream, first, strict=True)):
        yield Violation("mutated", UPSTREAM, "after backward, the upstream gradient it was given has changed")


def _changed(role: str, inputs: Inputs, given: Inputs, names: Iterable[str]) -> Iterator[Violation]:
    for name in names:
        entries = int(np.sum(inputs[name] != given[name]))
        if entries and not _same_bits(inputs[name], given[name]):
            words = f"after {role}, {entries} of {inputs[name].size} entries of {name} have changed"
            yield Violation("mutated", name, words)


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _repetition(subject: Subject, inputs: Inputs, sample: GradientSample) -> Iterator[Violation]:
    """Call backward again on copies; more than another order of the same sums is another answer."""
    calls = [subject.run_backward(sample.upstream, inputs) for _ in range(3)]
    for name, once in sample.got.items():
        if all(_equal(once, call.get(name), name, sample) for call in calls):
            continue
        with _seeded():
            first = subject.run_backward(sample.upstream, inputs)
        with _seeded():
            second = subject.run_backward(sample.upstream, inputs)
        if _equal(first[name], second.get(name), name, sample):
            yield Violation(
                "random", name, f"called twice on the same inputs, d{name} differs, as random numbers do"
            )
        else:
            yield Violation(
                "stale", name, f"called twice on the same inputs, d{name} differs: something is kept"
            )


def _equal(a: Array, b: Array | None, name: str, sample: GradientSample) -> bool:
    return b is not None and reordered(a, b, least=float(sample.bounds[name].size.max(initial=0)))


@contextmanager
def _seeded() -> Iterator[None]:
    """Make NumPy's and Python's unseeded randomness repeat itself for a moment."""
    import random

    state = np.random.get_state()  # noqa: NPY002 - the user's functions may use it
    numbers, make = random.getstate(), np.random.default_rng

    def seeded(seed: object = None) -> np.random.Generator:
        return make(0 if seed is None else seed)  # type: ignore[arg-type]

    np.random.seed(0)  # noqa: NPY002 - the user's functions may use it
    random.seed(0)
    np.random.default_rng = seeded
    try:
        yield
    finally:
        np.random.default_rng = make
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(numbers)


def _linearity(subject: Subject, inputs: Inputs, sample: GradientSample) -> Iterator[Violation]:
    """Look whether the gradient scales with the upstream one, and is zero where that is."""
    zero, twice = (
        subject.run_backward([factor * part for part in sample.upstream], inputs) for factor in (0, 2)
    )
    far = _far_scaled(subject, inputs, sample)
    for name, once in sample.got.items():
        if not np.all(np.isfinite(once)):
            continue
        nothing, size = zero.get(name, np.zeros(1)), float(np.abs(once).max(initial=0))
        if not np.all(np.isfinite(nothing)):
            yield Violation("affine", name, f"zero upstream gives a d{name} that is not finite")
        elif not reordered(nothing, np.zeros_like(nothing), size):
            yield Violation("affine", name, f"zero upstream gives a d{name} that is not zero")
        elif name not in twice or not reordered(twice[name], 2 * once):
            yield Violation("uneven", name, f"twice the upstream gradient does not give twice d{name}")
        else:
            yield from _uneven_far(name, once, far)


def _far_scaled(subject: Subject, inputs: Inputs, sample: GradientSample) -> dict[float, Gradients]:
    """Return the gradients for upstream ones of another size, where every number has the digits for it."""
    arrays = (*subject.inputs.values(), *subject.run_forward(subject.inputs), *sample.got.values())
    if rounding_error(*arrays) > EPS:
        return {}
    return {
        factor: subject.run_backward([factor * part for part in sample.upstream], inputs)
        for factor in FACTORS
    }


def _uneven_far(name: str, once: Array, far: dict[float, Gradients]) -> Iterator[Violation]:
    for factor, scaled in far.items():
        expected = factor * once
        if np.all(np.isfinite(expected)) and not (name in scaled and close(scaled[name], expected, UNEVEN)):
            words = FACTORS[factor]
            yield Violation("uneven", name, f"{words} the upstream gradient does not give {words} d{name}")
            return
