"""The mistake that makes the right gradient the wrong one: the table of edits, applied to the gradient code of the trace.

What mends a wrong backward and what spoils a right one are the same edits. Where there is no source to mend, or no small
edit mends it, the gradient code is mutated until it returns backward's numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.checking.diagnosis.candidate import Diagnosis
from handgrad.checking.effort import Effort
from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.gradient_code import GradientCode, write_gradient
from handgrad.checking.repair.instrumentation import Observed, observe
from handgrad.checking.repair.module_source import Change, ModuleSource, SourceError
from handgrad.checking.repair.run_limits import Guard, OutOfTimeError
from handgrad.checking.repair.sandbox import Sandbox, Target
from handgrad.checking.repair.search import exchanged, small_changes
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.verdict.comparison import Evidence, GradientSample
from handgrad.tolerance import SAME

BUDGET = 1.5  # seconds of a usual machine
COST = (
    0.9  # of an explanation by a mutation, before the size of its edit: what the numbers alone show is nearer
)
EACH = 0.2  # for each unit of an edit's cost
ENOUGH = 1.0  # of an edit's cost: when all is explained, what costs so much more is not tried
EVERYWHERE = 0.3  # more cost for one edit at several places
BY_CHANCE = {
    "wrong-sign": 1.2,
    "wrong-evaluation-point": 0.6,
    "wrong-local-derivative": 1.2,
    "extra-term": 0.3,
    "stale-or-mutated-state": 1.0,
}
"""What mutations cost more of which there are many, some of which may give the same numbers as a simple one."""


def by_mutation(evidence: Evidence) -> list[Diagnosis]:
    """Return the mutations of the right gradient that give backward's numbers, at every inputs."""
    trace, wrong = evidence.recording, _comparable(evidence)
    if trace is None or not wrong:
        return []
    arguments = evidence.comparisons[0].arguments
    code = write_gradient(trace, arguments) or write_gradient(trace, wrong)
    if code is None:
        return []
    try:
        source = _source(code, evidence.subject, trace)
    except SourceError:  # an input's name is no name in Python
        return []
    guard = Guard()
    with guard.search():
        return list(_explanations(evidence, source, guard, wrong, trace))


def _comparable(evidence: Evidence) -> tuple[str, ...]:
    """Return the wrong arguments whose gradients are finite and of the right shape."""
    return tuple(
        name for name in evidence.wrong
        if all(got.shape == right.shape and np.all(np.isfinite(got)) for got, right in evidence.pairs(name))
    )  # fmt: skip


def _explanations(
    evidence: Evidence, source: ModuleSource, guard: Guard, wrong: tuple[str, ...], trace: ForwardTrace
) -> Iterator[Diagnosis]:
    first, *rest = (_target(sample, wrong) for sample in evidence.samples())
    subject = replace(evidence.subject, forward=_nothing, backward=source.globals["backward"])
    sandbox = Sandbox(source, subject, first, guard, Effort())
    observed = observe(sandbox)
    until = np.inf
    changes = small_changes(source, observed)
    for change in (
        *_alike(changes),
        *changes,
    ):  # those of several places are few, and long code has many others
        if sandbox.effort.spent > BUDGET or change.cost > until:
            return
        met = (sandbox.met(change) - sandbox.base) & set(wrong)
        explained = frozenset(name for name in met if _is_nearer(name, first, evidence))
        renamed = isinstance(
            source.statement_of(change.edits[0].old), ast.Return
        )  # another line's result says nothing
        if not explained or not change.makes or (renamed and change.makes != "swapped-gradients"):
            continue
        found = _met_at_all(sandbox.subject_with(change), rest, explained, guard)
        if not found:
            continue
        if found >= set(wrong):
            until = min(until, change.cost + ENOUGH)
        arguments = tuple(name for name in evidence.wrong if name in found)
        cost = COST + EACH * (change.cost + BY_CHANCE.get(change.makes, 0.0))
        yield Diagnosis(
            change.makes, arguments, _words(source, change), cost, _place(change, observed, trace)
        )


def _alike(changes: list[Change]) -> Iterator[Change]:
    """Yield the same edit at every place alike: what is a loop in the source is line after line in the code."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if change.alike:
            groups.setdefault((change.alike, change.makes), []).append(change)
    for several in groups.values():
        inside = {id(node) for change in several for node in list(ast.walk(change.edits[0].old))[1:]}
        edits = [change.edits[0] for change in several if id(change.edits[0].old) not in inside]
        edits = list({id(edit.old): edit for edit in edits}.values())
        if len(edits) > 1:
            yield replace(several[0], edits=tuple(edits), cost=several[0].cost + EVERYWHERE)


def _target(sample: GradientSample, wrong: tuple[str, ...]) -> Target:
    """Return backward's numbers, as what a mutation is to give."""
    got = {name: sample.got[name] if name in wrong else sample.expected(name) for name in sample.got}
    near = {
        name: SAME * max(np.abs(value).max(initial=0), 1e-3 * np.abs(sample.expected(name)).max(initial=0))
        + 1e-300
        for name, value in got.items()
    }
    return Target(sample.inputs, sample.upstream, got, near)


def _is_nearer(name: str, target: Target, evidence: Evidence) -> bool:
    """Whether the wrong gradient is told from the right one by more than the tolerance."""
    right = next(iter(evidence.samples())).expected(name)
    return float(np.abs(right - target.gradients[name]).max(initial=0)) > 20 * float(
        np.max(target.tolerance[name])
    )


def _met_at_all(
    subject: Subject, targets: list[Target], explained: frozenset[str], guard: Guard
) -> frozenset[str]:
    """Return which arguments a mutation explains at the other samples too."""
    for target in targets:
        try:
            with guard.limit(1.0):
                explained &= target.met(subject.run_backward(target.upstream, target.inputs))
        except (CheckError, OutOfTimeError, MemoryError):
            return frozenset()
    return explained


def _source(code: GradientCode, subject: Subject, trace: ForwardTrace) -> ModuleSource:
    """Return the right gradient as the source of a module."""
    returned = ", ".join(f"{name!r}: {result}" for name, result in code.results.items())
    body = "".join(f"    {line}\n" for line in "\n".join(code.lines).splitlines())
    text = f"def backward(grad_output, {', '.join(subject.inputs)}):\n{body}    return {{{returned}}}\n"
    names: dict[str, Any] = {"np": np, **trace.modules}
    names |= {text: trace.values[index] for index, text in trace.texts.items() if text.isidentifier()}
    names |= {text: function for function, text in trace.spellings.items() if text.isidentifier()}
    names = {
        name: value for name, value in names.items() if name.isidentifier() and name not in subject.inputs
    }
    try:
        exec(compile(text, "<gradient>", "exec"), names)
    except SyntaxError as error:
        raise SourceError(f"the gradient code is no Python: {error}") from None
    return ModuleSource(Path("<gradient>"), text, "utf-8", "", "backward", names)


def _words(source: ModuleSource, change: Change) -> str:
    parts = (
        f"{f'with `{new}`' if new else 'with nothing'} for `{old}`" for old, new in exchanged(source, change)
    )
    return f"the right gradient gives these numbers {', and '.join(parts)}"


def _place(change: Change, observed: Observed, trace: ForwardTrace) -> str:
    """Return the line of forward that computes what the mutated code is about, or else the line that reads it."""
    values = [observed.values.get(id(node)) for edit in change.edits for node in ast.walk(edit.old)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    for indices in (lambda operation: (operation.output,), lambda operation: operation.inputs):
        for value in arrays:
            for operation in reversed(trace.operations):
                if any(np.array_equal(value, trace.values[index]) for index in indices(operation)):
                    return f"line {operation.place[1]}: {trace.source(operation)}"
    return ""


def _nothing(*_args: Any, **_inputs: Any) -> list[float]:
    """Stand in for a forward, of one output or of several, that need not run."""
    return [0.0]
