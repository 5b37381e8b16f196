"""The mistake that makes the right gradient the wrong one: the table of edits, applied to the gradient code of the trace.

What mends a wrong backward and what spoils a right one are the same edits. Where there is no source to mend, or no small
edit mends it, the gradient code is mutated until it returns backward's numbers.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.gradient_code import GradientCode, write_gradient
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.repair.changed_text import exchanged
from handgrad.checking.repair.edit_candidates import small_changes
from handgrad.checking.repair.expressions import Observed, observe
from handgrad.checking.repair.guard import Guard, OutOfTimeError
from handgrad.checking.repair.module_source import Change, ModuleSource
from handgrad.checking.repair.sandbox import Sandbox, Target
from handgrad.checking.subject import CheckError, Subject
from handgrad.checking.verdict.comparison import Evidence, GradientSample
from handgrad.tolerance import SAME

MOST_PLACES = 400  # expressions of the gradient's code: longer code has too many edits
BUDGET = 1.5  # seconds of a machine of 2024
LONGEST_RUN = 1.0  # seconds for a mutation at another sample
COST = (
    0.9  # of an explanation by a mutation, before the size of its edit: what the numbers alone show is nearer
)
EACH = 0.2  # for each unit of an edit's cost
ENOUGH = 1.0  # of an edit's cost: when all is explained, what costs so much more is not tried
TOLD_APART = 20  # tolerances between the wrong gradient and the right one, at the least
BY_CHANCE = {
    "wrong-sign": 1.2, "wrong-evaluation-point": 0.6, "wrong-local-derivative": 1.2, "extra-term": 0.3,
    "stale-or-mutated-state": 1.0,
}  # fmt: skip
"""What mutations cost more of which there are many, some of which may give the same numbers as a simple one."""


def by_mutation(evidence: Evidence) -> list[Diagnosis]:
    """Return the mutations of the right gradient that give backward's numbers, at every inputs."""
    trace = evidence.trace
    wrong = tuple(  # of the right shape, and finite
        name for name in evidence.wrong
        if all(got.shape == right.shape and np.all(np.isfinite(got)) for got, right in evidence.pairs(name))
    )  # fmt: skip
    if trace is None or not wrong:
        return []
    trace = trace.with_identifiers()
    names = dict(zip(evidence.subject.inputs, trace.inputs, strict=True))
    written = (
        write_gradient(trace, [names[each] for each in given])
        for given in (evidence.comparisons[0].arguments, wrong)
    )
    code = next((code for code in written if code is not None), None)
    if code is None:
        return []
    source, guard = _source(code, names, trace), Guard()
    with guard.search():
        return list(_explanations(evidence, source, guard, wrong, trace))


def _explanations(
    evidence: Evidence, source: ModuleSource, guard: Guard, wrong: tuple[str, ...], trace: ForwardTrace
) -> Iterator[Diagnosis]:
    samples = list(evidence.samples())
    first, *rest = (_target(sample, wrong) for sample in samples)
    off = {name: np.abs(samples[0].expected(name) - first.gradients[name]).max(initial=0) for name in wrong}
    telling = {name for name in wrong if off[name] > TOLD_APART * np.max(first.tolerance[name])}
    subject = replace(
        evidence.subject, forward=_nothing, backward=source.globals["backward"], positional=True
    )
    sandbox = Sandbox(source, subject, first, guard)
    observed = observe(sandbox)
    if len(observed.values) > MOST_PLACES:
        return
    until = np.inf
    for change in small_changes(source, observed):
        if guard.spent > BUDGET or change.cost > until:
            return
        explained = (sandbox.met(change) - sandbox.base) & telling
        # Another line's result in a return explains nothing, but where two are exchanged.
        renamed = isinstance(source.enclosing(change.edits[0].old, ast.stmt), ast.Return)
        if not explained or not change.makes or (renamed and change.makes != "swapped-gradients"):
            continue
        with sandbox.changed(change):
            for target in rest:
                explained &= _met(subject, target, guard)
        if explained:
            until = min(until, change.cost + ENOUGH) if explained >= set(wrong) else until
            cost = COST + EACH * (change.cost + BY_CHANCE.get(change.makes, 0.0))
            arguments = tuple(name for name in evidence.wrong if name in explained)
            exchanges = [
                f"{f'with `{new}`' if new else 'with nothing'} for `{old}`"
                for old, new in exchanged(source, change)
            ]
            words = f"the right gradient gives these numbers {', and '.join(exchanges)}"
            yield Diagnosis(change.makes, arguments, words, cost, _place(change, observed, trace))


def _target(sample: GradientSample, wrong: tuple[str, ...]) -> Target:
    """Return backward's numbers, as what a mutation is to give."""
    got = {name: sample.got[name] if name in wrong else sample.expected(name) for name in sample.got}
    sizes = {
        name: max(np.abs(value).max(initial=0), 1e-3 * np.abs(sample.expected(name)).max(initial=0))
        for name, value in got.items()
    }
    return Target(
        sample.inputs, sample.upstream, got, {name: SAME * size + 1e-300 for name, size in sizes.items()}
    )


def _met(subject: Subject, target: Target, guard: Guard) -> frozenset[str]:
    """Return which arguments a mutation explains at another sample."""
    try:
        with guard.limit(LONGEST_RUN):
            return target.met(subject.run_backward(target.upstream, target.inputs))
    except (CheckError, OutOfTimeError, MemoryError):
        return frozenset()


def _source(code: GradientCode, names: dict[str, str], trace: ForwardTrace) -> ModuleSource:
    """Return the right gradient as the source of a module; ``names`` are the inputs' in the trace."""
    results = {given: code.results[name] for given, name in names.items() if name in code.results}
    returned = ", ".join(f"{given!r}: {result}" for given, result in results.items())
    body = textwrap.indent("\n".join([*code.lines, f"return {{{returned}}}"]), "    ")
    text = f"def backward(grad_output, {', '.join(trace.inputs)}):\n{body}\n"
    scope: dict[str, Any] = {"np": np, **trace.modules}
    scope |= {text: trace.values[index] for index, text in trace.texts.items()}
    scope |= {text: function for function, text in trace.spellings.items()}
    scope = {name: value for name, value in scope.items() if name.isidentifier() and name not in trace.inputs}
    exec(compile(text, "<gradient>", "exec"), scope)
    return ModuleSource(Path("<gradient>"), text, "utf-8", {scope["backward"]: 0})


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
