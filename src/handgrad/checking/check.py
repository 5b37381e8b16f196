"""The check of a hand-written gradient, from two functions to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.checking.diagnosis import Guess, diagnose
from handgrad.checking.evidence import Evidence
from handgrad.checking.judging.contract import Breach, breaches, remembered
from handgrad.checking.judging.notes import not_proved, tried
from handgrad.checking.judging.verdict import Judgement, Sample, expect, judge, settled
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
    expected = expect(subject, subject.inputs, arguments, seed)
    judgement = judge(subject, expected)
    broken = breaches(subject, expected.exact, judgement.samples[0])
    expected, judgement = settled(subject, expected, judgement, seed)
    wrong = judgement.wrong + _wrong_in_own_type(subject, judgement)
    if not wrong and not broken and remembered(pair.backward) != before:
        broken = _stale(pair.inputs, subject, judgement.arguments, seed)
    findings: tuple[Finding, ...] = ()
    mended: Repair | None = None
    if wrong or broken:
        evidence = _evidence(pair.inputs, subject, expected, judgement, wrong, seed)
        kinds = {breach.kind for breach in broken}
        # Where something is kept, no run proves a repair; where only an upstream of 0 goes wrong, almost any would do.
        hopeless = "stale" in kinds or (not wrong and kinds == {"affine"})
        mended = None if hopeless else mend(evidence, budget_s=REPAIR_SECONDS)
        guesses = diagnose(evidence, broken, mended)
        findings = tuple(_finding(guess, judgement, mended) for guess in guesses)
    verdict: Verdict = "wrong" if findings or wrong else "cannot tell" if judgement.doubtful else "right"
    return Report(
        subject=pair.name,
        verdict=verdict,
        findings=findings,
        arguments=tuple(_result(name, judgement, wrong, broken) for name in judgement.arguments),
        tried=tuple(tried(expected)),
        not_proved=tuple(not_proved(subject, expected, judgement)),
        seconds=time.perf_counter() - started,
        mended=mended,
    )


def _wrong_in_own_type(subject: Subject, judgement: Judgement) -> tuple[str, ...]:
    """Return the arguments whose gradient is right in float64, and not finite in the inputs' own type."""
    sample = judgement.samples[0]
    own = [
        part.astype(output.dtype)
        for part, output in zip(sample.upstream, subject.run_forward(subject.inputs), strict=True)
    ]
    given = subject.run_backward(own, subject.inputs)
    return tuple(
        name for name in judgement.arguments
        if name not in judgement.wrong and not np.all(np.isfinite(given[name]))
    )  # fmt: skip


def _stale(source: Source, subject: Subject, arguments: tuple[str, ...], seed: int) -> list[Breach]:
    """Look whether backward is still right at other inputs, when the functions keep something between calls."""
    try:
        inputs = fresh(source, subject, np.random.default_rng([seed, 2]))
        wrong = judge(subject, expect(subject, inputs, arguments, seed)).wrong
    except CheckError:
        return []
    words = "right at the first inputs, wrong at the next: something of the first call is kept"
    return [Breach("stale", name, f"d{name} is {words}") for name in wrong]


def _evidence(
    source: Source, subject: Subject, expected: Any, judgement: Judgement, wrong: tuple[str, ...], seed: int
) -> Evidence:
    expectations, judgements = [expected], [judgement]
    generator = np.random.default_rng([seed, 1])
    for number in range(FRESH):
        try:
            inputs = fresh(source, subject, generator)
            another = expect(subject, inputs, judgement.arguments, seed + number + 1)
            judgements.append(judge(subject, another))
            expectations.append(another)
        except CheckError:
            break
    return Evidence(subject, tuple(expectations), tuple(judgements), wrong)


def _finding(guess: Guess, judgement: Judgement, mended: Repair | None) -> Finding:
    argument, *also = guess.arguments
    entry, got, right, relative, bar = _worst(argument, judgement)
    return Finding(
        code=guess.code, argument=argument, evidence=guess.evidence, also=tuple(also), place=guess.place,
        entry=entry, got=got, expected=right, relative_error=relative, error_bar=bar,
        repair=mended.diff if mended else "", proved=mended is not None, any_size=mended is None or mended.any_size,
    )  # fmt: skip


def _worst(argument: str, judgement: Judgement) -> tuple[tuple[int, ...], float, float, float, float]:
    """Return the worst entry of a gradient: index, got, right, relative error and error bar."""
    entries = (_worst_of(argument, sample) for sample in judgement.samples)
    known = (entry for entry in entries if entry is not None)
    return max(known, key=lambda entry: entry[3], default=((), 0.0, 0.0, 0.0, 0.0))


def _worst_of(argument: str, sample: Sample) -> tuple[tuple[int, ...], float, float, float, float] | None:
    got, right = sample.got[argument], sample.middle(argument)
    if got.shape != right.shape or got.size == 0:
        return None
    size = np.maximum(sample.magnitude[argument], sample.magnitude[argument].max() * 1e-12 + 1e-300)
    relative = np.asarray(sample.excess(argument) / size, np.float64)
    bad = np.where(np.isnan(relative), np.inf, relative)
    index = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), got.shape))
    bar = float(sample.tolerance[argument][index] / size[index])
    return index, float(got[index]), float(right[index]), float(bad[index]), bar


def _result(name: str, judgement: Judgement, wrong: tuple[str, ...], broken: list[Breach]) -> ArgumentResult:
    _, _, _, relative, bar = _worst(name, judgement)
    shape = judgement.samples[0].low[name].shape
    if any(sample.got[name].shape != shape for sample in judgement.samples):
        relative = bar = float("nan")
    breach = any(b.argument == name and b.kind != "mutated" for b in broken)
    verdict: Verdict = (
        "wrong" if name in wrong or breach else "cannot tell" if name in judgement.doubtful else "right"
    )
    return ArgumentResult(name, shape, verdict, relative, bar)
