"""The check of a hand-written gradient, from two functions to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.checking.diagnosis import diagnose
from handgrad.checking.input_draws import Source, draw, fresh
from handgrad.checking.interfaces import Pair, pair_of
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.repair import Repair, is_searching, mend
from handgrad.checking.report import ArgumentResult, Finding, Report, Verdict, not_proved, tried
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.verdict.comparison import (
    Comparison,
    Evidence,
    compare,
    numerical_gradient,
    rejudge_off_kinks,
)
from handgrad.checking.verdict.contract import Violation, module_state, stale_elsewhere, violations

REPAIR_SECONDS = 2.0  # of a machine of 2024, for the search of small edits
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
        A function of the inputs that returns an array, or a tuple of arrays; with them, a cache for ``backward``.
        Or what has a backward of its own: an object with ``forward`` and ``backward`` methods (or a network that
        updates itself), one method of it, a function that returns a loss with its gradients, a rule, a layer, a
        network, a ``torch.autograd.Function``, or a JAX function with a custom VJP. The numbers among a rule's
        options are changed a little: at 1 or 0, a backward that leaves one out would be right.
    backward
        A function of the upstream gradient (a tuple of them when forward returns several arrays) and the
        inputs, that returns a dict of gradients by the inputs' names, or a tuple of them in the inputs' order. Or of
        the upstream gradient and forward's cache, of forward's results by their names, or the derivative f'(x).
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
    before = module_state(pair.backward)
    subject = Subject.of(pair.forward, pair.backward, draw(pair.inputs, np.random.default_rng(seed)))
    comparison = compare(subject, numerical_gradient(subject, subject.inputs, subject.arguments(), seed))
    broken = violations(subject, comparison.samples[0])
    comparison = rejudge_off_kinks(subject, comparison, seed)
    wrong = comparison.wrong + _not_finite_in_own_type(subject, comparison)
    if not wrong and not broken and module_state(pair.backward) != before:
        broken = stale_elsewhere(subject, pair.inputs, comparison.arguments, seed)
    named: list[Diagnosis] = []
    repair: Repair | None = None
    if wrong or broken:
        evidence = Evidence(
            subject, (comparison, *_at_fresh_inputs(subject, pair.inputs, comparison, seed)), wrong
        )
        repair = mend(evidence, budget_s=REPAIR_SECONDS) if _can_be_proved(broken, wrong) else None
        named = diagnose(evidence, broken, repair)
    verdict: Verdict = "wrong" if wrong or broken else "cannot tell" if comparison.doubtful else "right"
    return Report(
        subject=pair.name,
        verdict=verdict,
        findings=tuple(_finding(diagnosis, comparison, repair) for diagnosis in named),
        arguments=tuple(_result(name, comparison, wrong, broken) for name in comparison.arguments),
        tried=tuple(tried(comparison.numerical)),
        not_proved=tuple(not_proved(subject, comparison)),
        seconds=time.perf_counter() - started,
        mended=repair,
    )


def _not_finite_in_own_type(subject: Subject, comparison: Comparison) -> tuple[str, ...]:
    """Return the arguments whose gradient is right in float64, and not finite in the inputs' own type."""
    pairs = zip(comparison.samples[0].upstream, subject.run_forward(subject.inputs), strict=True)
    given = subject.run_backward([part.astype(output.dtype) for part, output in pairs], subject.inputs)
    right = (name for name in comparison.arguments if name not in comparison.wrong)
    return tuple(name for name in right if not np.all(np.isfinite(given[name])))


def _at_fresh_inputs(
    subject: Subject, source: Source, comparison: Comparison, seed: int
) -> Iterator[Comparison]:
    """Compare at other inputs too, as far as there are any."""
    generator = np.random.default_rng([seed, 1])
    with suppress(CheckError):
        for number in range(FRESH):
            inputs = fresh(source, subject, generator)
            another = numerical_gradient(subject, inputs, comparison.arguments, seed + number + 1)
            yield compare(subject, another)


def _can_be_proved(broken: list[Violation], wrong: tuple[str, ...]) -> bool:
    """Whether running a repair proves it: not where state survives a call, nor where only a zero upstream goes wrong."""
    kinds = {violation.kind for violation in broken}
    return "stale" not in kinds and bool(wrong or kinds != {"affine"})


def _finding(diagnosis: Diagnosis, comparison: Comparison, repair: Repair | None) -> Finding:
    argument, *also = diagnosis.arguments
    return Finding(
        code=diagnosis.code, argument=argument, evidence=diagnosis.evidence, also=tuple(also), place=diagnosis.place,
        repair=repair.diff if repair else "", proved=repair is not None, any_size=repair is None or repair.any_size,
        **comparison.worst(argument)._asdict(),
    )  # fmt: skip


def _result(
    name: str, comparison: Comparison, wrong: tuple[str, ...], broken: list[Violation]
) -> ArgumentResult:
    worst, bounds = comparison.worst(name), comparison.samples[0].bounds[name]
    is_wrong = name in wrong or any(each.argument == name and each.kind != "mutated" for each in broken)
    verdict: Verdict = "wrong" if is_wrong else "cannot tell" if name in comparison.doubtful else "right"
    if any(sample.got[name].shape != bounds.low.shape for sample in comparison.samples):
        return ArgumentResult(name, bounds.low.shape, verdict, float("nan"), float("nan"))
    return ArgumentResult(name, bounds.low.shape, verdict, worst.relative_error, worst.error_bound)
