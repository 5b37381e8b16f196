"""The check of a hand-written gradient, from two functions to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.checking.diagnosis import Guess, diagnose
from handgrad.checking.evidence import Evidence
from handgrad.checking.numerical.comparison import (
    Comparison,
    GradientSample,
    compare,
    numerical_gradient,
    rejudge_off_kinks,
)
from handgrad.checking.numerical.contract import Violation, remembered, violations
from handgrad.checking.numerical.notes import not_proved, tried
from handgrad.checking.repair import Repair, is_searching, mend
from handgrad.checking.report import ArgumentResult, Finding, Report, Verdict
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.subject.adapters import Pair, pair_of
from handgrad.checking.subject.draws import Source, draw, fresh

REPAIR_SECONDS = 2.0
FRESH = 2  # other inputs at which an explanation must hold, and a repair be right


@judged
def check(
    forward: Any,
    backward: Callable[..., Any] | None = None,
    inputs: Source | Sequence[Any] | None = None,
    *,
    seed: Seed = 0,
) -> Report:
    """Check a hand-written gradient, and name the mistake when it is wrong.

    Parameters
    ----------
    forward
        A function of the inputs that returns an array, or a tuple of arrays. Or what has a backward of its own: a
        rule, a layer, a network, a ``torch.autograd.Function``, or a JAX function with a custom VJP. The numbers
        among a rule's options are changed a little: at 1 or 0, a backward that leaves one out would be right.
    backward
        A function of the upstream gradient (a tuple of them when forward returns several arrays) and the
        inputs, that returns a dict of gradients by the inputs' names, or a tuple of them in the inputs' order.
    inputs
        Arrays by name, or in the order that forward takes them, or a function of a ``numpy.random.Generator`` that
        returns them. Whole numbers are not differentiated, and neither is what backward leaves out. Rules, layers
        and networks draw their own where none are given; their parameters are as they are, but those that are one
        number everywhere, biases of 0 and gains of 1, are changed.
    seed
        Of the upstream gradients and of other inputs.

    Returns
    -------
    Report
        Print it, or ask for its ``verdict`` and ``findings``.

    Raises
    ------
    CheckError
        When a function raises, or what it returns does not fit the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> def forward(x):
    ...     return np.tanh(x)
    >>> def backward(grad_output, x):
    ...     return {"x": grad_output * (1 - np.tanh(x) ** 2)}
    >>> check(forward, backward, {"x": np.array([0.5, -1.0])}).verdict
    'right'
    """
    if is_searching():
        raise CheckError("check was called by code that a check runs while it looks for a repair")
    with np.errstate(all="ignore"):
        return _check(pair_of(forward, backward, inputs), seed)


def _check(pair: Pair, seed: int) -> Report:
    started = time.perf_counter()
    generator = np.random.default_rng(seed)
    before = remembered(pair.backward)
    subject = Subject.of(pair.forward, pair.backward, draw(pair.inputs, generator))
    outputs = subject.run_forward(subject.inputs)
    arguments = tuple(subject.run_backward([np.ones_like(part) for part in outputs], subject.inputs))
    for name in arguments:
        if not np.all(np.isfinite(subject.inputs[name])):
            raise CheckError(
                f"the input {name!r} is not finite", fix="give finite numbers, or leave its gradient out"
            )
    comparison = compare(subject, numerical_gradient(subject, subject.inputs, arguments, seed))
    broken = violations(subject, comparison.samples[0])
    comparison = rejudge_off_kinks(subject, comparison, seed)
    wrong = comparison.wrong + _wrong_in_own_type(subject, comparison)
    if not wrong and not broken and remembered(pair.backward) != before:
        broken = _stale(pair.inputs, subject, comparison.arguments, seed)
    findings: tuple[Finding, ...] = ()
    mended: Repair | None = None
    if wrong or broken:
        evidence = _evidence(pair.inputs, subject, comparison, wrong, seed)
        kinds = {violation.kind for violation in broken}
        # Where something is kept, no run proves a repair; where only an upstream of 0 goes wrong, almost any would do.
        hopeless = "stale" in kinds or (not wrong and kinds == {"affine"})
        mended = None if hopeless else mend(evidence, budget_s=REPAIR_SECONDS)
        guesses = diagnose(evidence, broken, mended)
        findings = tuple(_finding(guess, comparison, mended) for guess in guesses)
    verdict: Verdict = "wrong" if findings or wrong else "cannot tell" if comparison.doubtful else "right"
    return Report(
        subject=pair.name,
        verdict=verdict,
        findings=findings,
        arguments=tuple(_result(name, comparison, wrong, broken) for name in comparison.arguments),
        tried=tuple(tried(comparison.numerical)),
        not_proved=tuple(not_proved(subject, comparison)),
        seconds=time.perf_counter() - started,
        mended=mended,
    )


def _wrong_in_own_type(subject: Subject, comparison: Comparison) -> tuple[str, ...]:
    """Return the arguments whose gradient is right in float64, and not finite in the inputs' own type."""
    sample = comparison.samples[0]
    own = [
        part.astype(output.dtype)
        for part, output in zip(sample.upstream, subject.run_forward(subject.inputs), strict=True)
    ]
    given = subject.run_backward(own, subject.inputs)
    return tuple(
        name for name in comparison.arguments
        if name not in comparison.wrong and not np.all(np.isfinite(given[name]))
    )  # fmt: skip


def _stale(source: Source, subject: Subject, arguments: tuple[str, ...], seed: int) -> list[Violation]:
    """Look whether backward is still right at other inputs, when the functions keep something between calls."""
    try:
        inputs = fresh(source, subject, np.random.default_rng([seed, 2]))
        wrong = compare(subject, numerical_gradient(subject, inputs, arguments, seed)).wrong
    except CheckError:
        return []
    words = "right at the first inputs, wrong at the next: something of the first call is kept"
    return [Violation("stale", name, f"d{name} is {words}") for name in wrong]


def _evidence(
    source: Source, subject: Subject, comparison: Comparison, wrong: tuple[str, ...], seed: int
) -> Evidence:
    comparisons = [comparison]
    generator = np.random.default_rng([seed, 1])
    for number in range(FRESH):
        try:
            inputs = fresh(source, subject, generator)
            another = numerical_gradient(subject, inputs, comparison.arguments, seed + number + 1)
            comparisons.append(compare(subject, another))
        except CheckError:
            break
    return Evidence(subject, tuple(comparisons), wrong)


def _finding(guess: Guess, comparison: Comparison, mended: Repair | None) -> Finding:
    argument, *also = guess.arguments
    entry, got, right, relative, bar = _worst(argument, comparison)
    return Finding(
        code=guess.code, argument=argument, evidence=guess.evidence, also=tuple(also), place=guess.place,
        entry=entry, got=got, expected=right, relative_error=relative, error_bar=bar,
        repair=mended.diff if mended else "", proved=mended is not None, any_size=mended is None or mended.any_size,
    )  # fmt: skip


def _worst(argument: str, comparison: Comparison) -> tuple[tuple[int, ...], float, float, float, float]:
    """Return the worst entry of a gradient: index, got, right, relative error and error bar."""
    entries = (_worst_of(argument, sample) for sample in comparison.samples)
    known = (entry for entry in entries if entry is not None)
    return max(known, key=lambda entry: entry[3], default=((), 0.0, 0.0, 0.0, 0.0))


def _worst_of(
    argument: str, sample: GradientSample
) -> tuple[tuple[int, ...], float, float, float, float] | None:
    got, right = sample.got[argument], sample.expected(argument)
    if got.shape != right.shape or got.size == 0:
        return None
    size = np.maximum(sample.magnitude[argument], sample.magnitude[argument].max() * 1e-12 + 1e-300)
    relative = np.asarray(sample.excess(argument) / size, np.float64)
    bad = np.where(np.isnan(relative), np.inf, relative)
    index = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), got.shape))
    bar = float(sample.tolerance[argument][index] / size[index])
    return index, float(got[index]), float(right[index]), float(bad[index]), bar


def _result(
    name: str, comparison: Comparison, wrong: tuple[str, ...], broken: list[Violation]
) -> ArgumentResult:
    _, _, _, relative, bar = _worst(name, comparison)
    shape = comparison.samples[0].low[name].shape
    if any(sample.got[name].shape != shape for sample in comparison.samples):
        relative = bar = float("nan")
    violation = any(b.argument == name and b.kind != "mutated" for b in broken)
    verdict: Verdict = (
        "wrong" if name in wrong or violation else "cannot tell" if name in comparison.doubtful else "right"
    )
    return ArgumentResult(name, shape, verdict, relative, bar)
