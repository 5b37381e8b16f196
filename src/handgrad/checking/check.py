"""The check of a hand-written gradient, from two functions to a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.checking.diagnosis import by_evidence, by_first_wrong, cover, diagnose
from handgrad.checking.input_draws import Source, draw, fresh
from handgrad.checking.interfaces import Pair, pair_of, with_surrogate
from handgrad.checking.intermediates import FirstWrong, first_wrong
from handgrad.checking.live_code import without_guards
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.progress import tell
from handgrad.checking.repair import Repair, is_searching, mend
from handgrad.checking.repair.other_inputs import OtherInputs
from handgrad.checking.report import ArgumentResult, Finding, Report, Verdict, not_proved, tried
from handgrad.checking.subject import CheckError, DeadlineError, Inputs, Subject, within
from handgrad.checking.verdict.analytic import seconds_of
from handgrad.checking.verdict.comparison import (
    Comparison,
    Evidence,
    compare,
    numerical_gradient,
    rejudge_off_kinks,
)
from handgrad.checking.verdict.contract import Violation, module_state, stale_elsewhere, ties, violations
from handgrad.checking.verdict.nearly_right import (
    clips,
    functions_reached,
    guards_of_forward_alone,
    nearly_right,
)
from handgrad.checking.verdict.slopes import mistrust_slopes

NAMING_SECONDS = 20.0  # of the processor, at the most, for all that comes after the verdict
ELSEWHERE = (
    "right at the inputs that were given, and wrong at others of the same sizes, at which it is judged here"
)
REPAIR_SECONDS = 2.0  # of a machine of 2024, for the search of small edits
SECONDS_ELSEWHERE = 0.4  # of a machine of 2024, at other inputs than the user's, of the two until the verdict
RUNS = 10  # of forward, that judging at one of them takes as long as
LITTLE = 2.0**-10  # of an upstream gradient, which no clip meets: of less, an update's step has no digits
FLAT = 1e-6  # of what backward returns: smaller, and the gradient should be zero
FRESH = 2  # other inputs at which an explanation must hold, and a repair be right


@judged
def check(
    forward: Any,
    backward: Callable[..., Any] | None = None,
    inputs: Source | Sequence[Any] | None = None,
    *,
    seed: Seed = 0,
    surrogate: Callable[..., Any] | None = None,
) -> Report:
    """Check a hand-written gradient, and name the mistake when it is wrong.

    Parameters
    ----------
    forward
        A function of the inputs that returns an array, or a tuple of arrays; with them, a cache for ``backward``.
        Or what has a backward of its own: an object with ``forward`` and ``backward`` methods (or a network that
        updates itself), one method of it, a function that returns a loss with its gradients or that trains in a
        loop, a rule, a layer, a network, a ``torch.autograd.Function``, or a JAX function with a custom VJP. The
        numbers among a rule's options are changed a little: at 1 or 0, a backward that leaves one out would be right.
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
    surrogate
        A function of the inputs, by their names, whose derivative backward is meant to return in place of forward's:
        of a straight-through estimator ``lambda x: x``, of a gradient reversal ``lambda x: -x``.

    Returns
    -------
    Report
        Print it, or ask for its ``verdict`` and ``findings``.

        The verdict comes first. Naming the mistake and looking for a repair ends after 20 seconds of processor time, and
        with Ctrl-C: the report then has what is known, and ``Report.stopped``.

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
    return check_in_stages(forward, backward, inputs, surrogate, seed, lambda report: None)


def check_in_stages(
    forward: Any,
    backward: Any,
    inputs: Any,
    surrogate: Callable[..., Any] | None,
    seed: int,
    judged: Callable[[Report], None],
) -> Report:
    """Check, and hand on a report of the verdict alone before the mistake is named: that takes longer.

    An interrupt by then, or much time, ends it with the report of what is known.
    """
    if is_searching():
        raise CheckError("check was called by code that a check runs while it looks for a repair")
    started = time.perf_counter()
    with np.errstate(all="ignore"), ExitStack() as stack:
        pair = pair_of(forward, backward, inputs)
        pair = with_surrogate(pair, surrogate) if surrogate is not None else pair
        case = _judge(pair, seed)
        if _is_mistake(case) and (guards := guards_of_forward_alone(case.comparison)):
            stack.enter_context(without_guards([*guards], functions_reached(case.subject, case.comparison)))
            text = f"{' and '.join(guards.values())}, which backward does not have"
            case = replace(_judge(pair, seed), unguarded=f"judged without {text}")
            if not _is_mistake(case):
                case = replace(case, but=case.but or f"the gradient is right but for {text}")
        if any(each.kind == "uneven" for each in case.broken) and not case.but:
            case = _judged_unclipped(pair, case, seed)
        report = _report(pair, case, time.perf_counter() - started)
        if not _is_mistake(case):
            return report
        stopped = ""
        try:
            judged(report)
            with within(NAMING_SECONDS):
                if cause := _cause(case):
                    return replace(report, cause=cause, seconds=time.perf_counter() - started)
                for known in _explained(report, pair, case, seed):
                    report = known
        except DeadlineError:
            stopped = f"stopped after {NAMING_SECONDS:.0f} s"
        except KeyboardInterrupt:
            stopped = "interrupted"
    return replace(report, stopped=stopped, seconds=time.perf_counter() - started)


@dataclass(frozen=True)
class _Case:
    """What was found about a pair before any mistake is named."""

    subject: Subject
    comparison: Comparison
    wrong: tuple[str, ...]
    broken: list[Violation]
    doubtful: str = ""  # why nothing can be told of any gradient
    elsewhere: bool = False  # whether it is right at the user's inputs, and wrong at these
    but: str = ""  # what keeps it from being right, though it is no mistake in the mathematics
    unguarded: str = ""  # the guards of forward that it is judged without

    @property
    def verdict(self) -> Verdict:
        if self.but:
            return "right, but"
        if self.wrong or self.broken:
            return "wrong"
        return "cannot tell" if self.doubtful or self.comparison.doubtful else "right"


def _judge(pair: Pair, seed: int, scale: float = 1.0) -> _Case:
    before = module_state(pair.backward)
    subject = Subject.of(pair.forward, pair.backward, draw(pair.inputs, np.random.default_rng(seed)))
    subject = replace(subject, scale=scale)
    comparison = _compared(subject, subject.inputs, subject.arguments(), seed)
    broken = [*violations(subject, comparison.samples[0]), *ties(subject, comparison)]
    wrong = comparison.wrong + _not_finite_in_own_type(subject, comparison)
    if not wrong and not broken and module_state(pair.backward) != before:
        broken = stale_elsewhere(subject, pair.inputs, comparison.arguments, seed)
    case = _Case(subject, comparison, wrong, broken)
    if not wrong and all(each.kind == "mutated" for each in broken):
        case = _judged_elsewhere(case, pair.inputs, seed)
    if not (case.wrong or case.broken):
        return case
    return replace(case, but=_but(case))


def _but(case: _Case) -> str:
    """Return what keeps a gradient from being right where its mathematics is, or ""."""
    kinds = {each.kind for each in case.broken}
    if not case.wrong and kinds == {"mutated"}:
        return "; ".join(each.evidence for each in case.broken)
    if kinds <= {"mutated", "uneven"} and set(case.wrong) == set(case.comparison.wrong):
        return nearly_right(case.subject, case.comparison, is_uneven="uneven" in kinds)
    return ""


def _is_mistake(case: _Case) -> bool:
    """Whether there is something to name and to mend: a wrong gradient, or an argument that is changed."""
    if case.but:
        return not case.wrong and all(each.kind == "mutated" for each in case.broken)
    return bool(case.wrong or case.broken)


def _judged_unclipped(pair: Pair, case: _Case, seed: int) -> _Case:
    """Judge what clips its gradient where it is too small for that, if it is wrong there too: its other mistakes show."""
    places, _ = clips(case.subject, case.comparison)
    if not places:
        return case
    small = _judge(pair, seed, LITTLE)
    uneven, still = ({each.argument for each in one.broken if each.kind == "uneven"} for one in (case, small))
    if not small.wrong or not still < uneven:  # it is not the clip that makes them so
        return case
    broken = [each for each in small.broken if each.kind != "uneven"]  # what is left of them is rounding
    why = f"judged at gradients that are too small to be clipped (in {places})"
    return replace(small, broken=broken, unguarded=why)


def _cause(case: _Case) -> str:
    """Return the functions that forward calls, with whose derivative for their backward all is right; or ""."""
    if not case.comparison.wrong:  # a contract is broken, which is no Function's doing
        return ""
    for name, backward in getattr(case.subject.backward, "with_derived", dict)().items():
        with suppress(CheckError):  # of a forward that the library cannot differentiate
            if not compare(replace(case.subject, backward=backward), case.comparison.numerical).wrong:
                return str(name)
    return ""


def _judged_elsewhere(case: _Case, source: Source, seed: int) -> _Case:
    """Judge at other inputs too: a mask may be right by chance at a few, and a gradient of zeros proves nothing."""
    subject, arguments = case.subject, case.comparison.arguments
    others = OtherInputs(Evidence(subject, (case.comparison,), (), source), whole=False)
    if others.can_be_drawn() and others.tied():
        return case
    nothing = {name for name in arguments if _is_nothing(case.comparison, name)}
    most, seen = int(SECONDS_ELSEWHERE / (RUNS * seconds_of(subject, case.comparison.numerical.exact))), 0
    for target in islice(others.lazily(), most):
        seen += 1
        nothing -= {name for name in nothing if np.any(target.gradients[name])}
        if not others.is_right(subject, [target]):
            comparison = _compared(subject, target.inputs, arguments, seed)
            met = target.met(subject.run_backward(target.upstream, target.inputs))
            if (
                comparison.wrong and set(comparison.wrong) == set(arguments) - met
            ):  # the slopes and the trace agree
                # what is named and proved, is so there
                there = replace(subject, inputs=comparison.numerical.inputs)
                return replace(
                    case, subject=there, comparison=comparison, wrong=comparison.wrong, elsewhere=True
                )
    if nothing == set(arguments) and all(value.size for value in subject.inputs.values()):
        return replace(case, doubtful=f"every gradient is zero, here and at {seen} other inputs")
    return case


def _compared(subject: Subject, inputs: Inputs, arguments: tuple[str, ...], seed: int) -> Comparison:
    """Compare at some inputs, and once more where kinks or waves may have spoilt the slopes."""
    comparison = compare(subject, numerical_gradient(subject, inputs, arguments, seed))
    return mistrust_slopes(subject, rejudge_off_kinks(subject, comparison, seed))


def _is_nothing(comparison: Comparison, name: str) -> bool:
    return not any(np.any(sample.got[name]) for sample in comparison.samples)


def _explained(report: Report, pair: Pair, case: _Case, seed: int) -> Iterator[Report]:
    """Yield the report with the first wrong line, with what the numbers alone name, and with a repair that was proved."""
    tell("looking for the first wrong line")
    source = case.subject.inputs if case.elsewhere else pair.inputs
    fresh_ones = tuple(_at_fresh_inputs(case.subject, source, case.comparison, seed))
    evidence = Evidence(case.subject, (case.comparison, *fresh_ones), case.wrong, source)
    first = first_wrong(evidence)
    yield replace(report, first_wrong=first)

    def with_names(named: list[Diagnosis], repair: Repair | None) -> Report:
        placed = (_placed(each, first, repair) for each in named)
        found = tuple(_finding(each, case.comparison, repair, is_fresh=bool(fresh_ones)) for each in placed)
        shown = None if first is not None and _is_elsewhere(repair, first) else first
        return replace(report, findings=found, first_wrong=shown, mended=repair)

    tell("naming the mistake, by the numbers")
    is_random = any(each.kind == "random" for each in case.broken)  # what is drawn anew was not updated
    known = [*(() if is_random else by_first_wrong(first)), *by_evidence(evidence, case.broken)]
    yield with_names(cover(known, evidence.wrong), None)
    can_be_proved = _can_be_proved(case.broken, case.wrong) and not _is_flat(evidence)
    repair = mend(evidence, first, budget_s=REPAIR_SECONDS) if can_be_proved else None
    yield with_names(cover(known, evidence.wrong), repair)
    tell("naming the mistake, by edits of the right gradient")
    yield with_names(diagnose(evidence, known, repair), repair)


def _is_elsewhere(repair: Repair | None, first: FirstWrong) -> bool:
    """Whether a proved edit shows that the first wrong value is right where it is computed, and wrongly used or called."""
    if repair is None or repair.kind != "edit" or not repair.any_size:
        return False
    return str(repair.path) != first.path or first.line not in repair.lines


def _placed(diagnosis: Diagnosis, first: FirstWrong | None, repair: Repair | None) -> Diagnosis:
    """Return a diagnosis with its place in backward, if it has one: what the repair edits, or the first wrong line."""
    edited = {one.place for one in repair.undone} if repair is not None else set()
    if (
        first is None
        or not diagnosis.place
        or diagnosis.place in edited
        or not set(diagnosis.arguments) & set(first.mends)
    ):
        return diagnosis
    return replace(diagnosis, place=f"line {first.line}: {first.source}")


def _report(pair: Pair, case: _Case, seconds: float) -> Report:
    comparison = case.comparison
    notes = [case.doubtful] if case.doubtful else []
    return Report(
        subject=pair.name,
        verdict=case.verdict,
        arguments=tuple(_result(name, case) for name in comparison.arguments),
        tried=(*pair.matched, *tried(comparison.numerical)),
        not_proved=(*notes, *pair.limits, *not_proved(case.subject, comparison)),
        reason=case.but or "; ".join(filter(None, [ELSEWHERE * case.elsewhere, case.unguarded])),
        seconds=seconds,
        verdict_seconds=seconds,
    )


def _not_finite_in_own_type(subject: Subject, comparison: Comparison) -> tuple[str, ...]:
    """Return the arguments whose gradient is right in float64, and not finite in the inputs' own type."""
    pairs = zip(comparison.samples[0].upstream, subject.outputs, strict=True)
    given = subject.run_backward([part.astype(output.dtype) for part, output in pairs], subject.inputs)
    right = (name for name in comparison.arguments if name not in comparison.wrong)
    return tuple(name for name in right if not np.all(np.isfinite(given[name])))


def _at_fresh_inputs(
    subject: Subject, source: Source, comparison: Comparison, seed: int
) -> Iterator[Comparison]:
    """Compare at other inputs too, as far as there are any; at the last, whole numbers are as given: the trace holds them."""
    generator = np.random.default_rng([seed, 1])
    with suppress(CheckError):
        for number in range(FRESH):
            inputs = fresh(source, subject, generator, whole=number < FRESH - 1)
            another = numerical_gradient(subject, inputs, comparison.arguments, seed + number + 1)
            yield compare(subject, another)


def _can_be_proved(broken: list[Violation], wrong: tuple[str, ...]) -> bool:
    """Whether running a repair proves it: not where state survives a call, nor where only zeros or ties go wrong."""
    kinds = {violation.kind for violation in broken}
    return "stale" not in kinds and bool(wrong or not kinds <= {"affine", "tied"})


def _is_flat(evidence: Evidence) -> bool:
    """Whether each gradient that is wrong should be zero: what the backward of a step is meant to be, its author knows.

    One that is zero at these inputs only, of a balanced batch at zeros, has a path through which it is others elsewhere.
    """
    samples, trace = list(evidence.samples()), evidence.trace
    is_zero = bool(evidence.wrong) and all(
        np.abs(sample.expected(name)).max(initial=0) <= FLAT * np.abs(sample.got[name]).max(initial=0)
        for sample in samples
        for name in evidence.wrong
    )
    return is_zero and not (trace is not None and any(map(trace.reaches, evidence.wrong)))


def _finding(
    diagnosis: Diagnosis, comparison: Comparison, repair: Repair | None, *, is_fresh: bool
) -> Finding:
    argument, *also = diagnosis.arguments
    return Finding(
        code=diagnosis.code, argument=argument, evidence=diagnosis.evidence, also=tuple(also), place=diagnosis.place,
        alternative=diagnosis.alternative,
        repair=repair.diff if repair else "", proved=repair is not None, any_size=repair is None or repair.any_size,
        is_fresh=is_fresh, **comparison.worst(argument)._asdict(),
    )  # fmt: skip


def _result(name: str, case: _Case) -> ArgumentResult:
    comparison = case.comparison
    worst, bounds = comparison.worst(name), comparison.samples[0].bounds[name]
    is_wrong = name in case.wrong or any(
        each.argument == name and each.kind != "mutated" for each in case.broken
    )
    doubtful = case.doubtful or name in comparison.doubtful
    verdict: Verdict = "wrong" if is_wrong else "cannot tell" if doubtful else "right"
    verdict = "right, but" if is_wrong and case.but else verdict
    if any(sample.got[name].shape != bounds.low.shape for sample in comparison.samples):
        return ArgumentResult(name, bounds.low.shape, verdict, float("nan"), float("nan"))
    return ArgumentResult(name, bounds.low.shape, verdict, worst.relative_error, worst.error_bound)
