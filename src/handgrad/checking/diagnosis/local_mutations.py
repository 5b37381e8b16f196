"""Mistakes at one place of the chain rule: paths left out or scaled, one use for all, and what the neighbours look for.

What is a loop in the source is the same operation at the same line: a mistake there is made at each, or at one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.diagnosis.batch_sizes import batch_sizes, counts_features
from handgrad.checking.diagnosis.changed_arrays import changed_arrays
from handgrad.checking.diagnosis.mutated_chain_rule import (
    LocalRule,
    MutatedChainRule,
    Rules,
    Scaled,
    named_value,
    quoted_line,
)
from handgrad.checking.diagnosis.slope_mutations import activations, passed_on, slopes
from handgrad.checking.forward_trace import ForwardTrace, Operation
from handgrad.checking.forward_trace.operation import fill
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.verdict.comparison import Evidence
from handgrad.tolerance import close

MOST_SINGLE = 40  # operations of one line that are looked at one by one
MOST_USES = 12  # of a value, each of which may be the only one that counts
DIGITS = 6  # of a factor, by which two are the same
MOST_PATHS = 6  # named values through which paths are left out two by two

# Costs: exact at every inputs, these are hardly chance; a relation of whole gradients is simpler still.
LEFT_OUT, SCALED, ONE_USE = 0.62, 0.66, 0.64
AND = 0.06  # more for a second place
ENOUGH = 0.7  # an explanation of all that is no dearer is not sought a better one for


def by_local_mutation(evidence: Evidence) -> list[Diagnosis]:
    """Return the mistakes at one place of the chain rule that give backward's numbers, at every inputs."""
    trace = evidence.trace
    chain = MutatedChainRule(evidence, trace) if trace is not None else None
    found: list[Diagnosis] = []
    if chain is None or not chain.points:
        return found
    paths = partial(_paths, evidence=evidence)
    for family in (changed_arrays, _uses, slopes, passed_on, paths):
        if chain.is_spent or any(len(d.arguments) == len(evidence.wrong) and d.cost <= ENOUGH for d in found):
            break
        found += family(chain)
    return found


class Edge(NamedTuple):
    """What one value gets from one operation."""

    operation: Operation
    value: int


def _edges(trace: ForwardTrace) -> list[Edge]:
    return list(dict.fromkeys(Edge(o, o.inputs[k]) for o, k in trace.edges()))


def _without(edges: Iterable[Edge]) -> Rules:
    """Return the rules that leave out some edges."""
    gone: dict[int, tuple[Operation, set[int]]] = {}
    for edge in edges:
        gone.setdefault(edge.operation.number, (edge.operation, set()))[1].add(edge.value)

    def rule(operation: Operation, values: set[int]) -> LocalRule:
        inputs = operation.inputs
        return lambda _, products, __: [
            (inputs[k], p) for k, p in products.items() if inputs[k] not in values
        ]

    return {number: rule(*each) for number, each in gone.items()}


# --------------------------------------------------------------------------------------------------- paths


def _key(edge: Edge) -> tuple[Any, ...]:
    """Return what an edge shares with those of the same loop."""
    operands = tuple(k for k, i in enumerate(edge.operation.inputs) if i == edge.value)
    return edge.operation.place, edge.operation.name, operands


def _groups(trace: ForwardTrace) -> dict[tuple[Any, ...], list[Edge]]:
    groups: dict[tuple[Any, ...], list[Edge]] = {}
    for edge in _edges(trace):
        groups.setdefault(_key(edge), []).append(edge)
    return groups


def _paths(chain: MutatedChainRule, evidence: Evidence) -> Iterator[Diagnosis]:
    """Leave out a path, or scale what comes through it: in every pass of a loop, or in one."""
    trace = chain.trace
    groups = _groups(trace).values()
    single = ([edge] for several in groups if 1 < len(several) <= MOST_SINGLE for edge in several)
    found: dict[Any, tuple[list[Edge], Scaled]] = {}
    for edges in (*groups, *single):
        if chain.is_spent:
            break
        if any(chain.may_spoil(edge.value) for edge in edges) or not edges[0].operation.place[1]:
            continue
        scaled = chain.scaled(_without(edges))
        if scaled is not None and not close(scaled.factor, 1.0) and not scaled.is_all:
            key = scaled.names, round(scaled.factor, DIGITS)
            if key not in found or (
                edges[0].value in trace.names and found[key][0][0].value not in trace.names
            ):
                found[key] = edges, scaled  # the same path from another place; of these, one with a name
    for edges, scaled in found.values():
        yield _of_scaled(chain, evidence, edges, scaled)
    yield from _constants(chain)


def _of_scaled(chain: MutatedChainRule, evidence: Evidence, edges: list[Edge], scaled: Scaled) -> Diagnosis:
    """Name what multiplies a term by a factor; 0 leaves it out."""
    trace, (operation, value), factor = chain.trace, edges[0], scaled.factor
    term = f"what {named_value(trace, value)} gets from {quoted_line(trace, operation)}"
    subject = f"d{scaled.names[0]}"
    if close(factor, 0.0, least=1.0):
        known = [each for each in activations(trace) if operation in each.operations]
        is_formula = any(each.is_formula for each in known)
        codes = ("wrong-local-derivative", "missing-term") if is_formula else ("missing-term", "")
        return Diagnosis(codes[0], scaled.names, f"{subject} lacks {term}", LEFT_OUT, alternative=codes[1])
    if close(factor, -1.0):
        return Diagnosis("wrong-sign", scaled.names, f"{subject} has {term} with the opposite sign", SCALED)
    words = f"{subject} has {factor:.6g} times {term}"
    group = _groups(trace)[_key(edges[0])]
    factor_at = partial(_factor_at, key=_key(edges[0]), places=[group.index(edge) for edge in edges])
    features = counts_features(evidence, scaled.names[0], factor)
    if not features and (sizes := batch_sizes(evidence, scaled.names, factor, factor_at)):
        return Diagnosis("batch-mean-vs-sum", scaled.names, f"{words}: {sizes}", SCALED)
    other = "extra-term" if close(factor, 2.0) else ""
    return Diagnosis("constant-factor", scaled.names, words, SCALED, alternative=other)


def _factor_at(evidence: Evidence, key: tuple[Any, ...], places: list[int]) -> float | None:
    """Return the factor of the same paths at other inputs, of all of a loop or of some."""
    trace = evidence.trace
    chain = MutatedChainRule(evidence, trace) if trace is not None else None
    if chain is None or not chain.points:
        return None
    same = _groups(chain.trace).get(key, [])
    scaled = chain.scaled(_without(same if len(places) > 1 else same[places[0] : places[0] + 1]))
    return scaled.factor if scaled else None


def _constants(chain: MutatedChainRule) -> Iterator[Diagnosis]:
    """Take named values, one or two, for constants: no gradient goes through them."""
    trace = chain.trace
    known = [o for o in trace.operations if o.output in trace.names and o.output in trace.active]
    known = [o for o in known if o.output not in trace.outputs and not chain.may_spoil(o.output)][
        -MOST_PATHS:
    ]
    for several in (*((o,) for o in known), *combinations(known, 2)):
        if chain.is_spent:
            return
        rules: Rules = {o.number: lambda *_: [] for o in several}
        if names := chain.explained(rules):
            values = " and ".join(named_value(trace, o.output) for o in several)
            lines = " and ".join(quoted_line(trace, o) for o in several)
            words = f"d{names[0]} lacks the paths through {values}, in {lines}"
            yield Diagnosis("missing-term", names, words, LEFT_OUT + AND * len(several) - AND)


# ---------------------------------------------------------------------------------- values with several uses


def _uses(chain: MutatedChainRule) -> Iterator[Diagnosis]:
    """Let one use of a value alone count, or let later windows of an array take the place of earlier ones."""
    trace = chain.trace
    uses: dict[int, list[Edge]] = {}
    for edge in _edges(trace):
        uses.setdefault(edge.value, []).append(edge)
    for value, edges in uses.items():
        for which, rules in _overwritten(value, edges) if not chain.may_spoil(value) else ():
            if chain.is_spent:
                return
            if names := chain.explained(rules):
                line = quoted_line(trace, edges[0].operation)
                words = (
                    f"d{names[0]} has {which} what {named_value(trace, value)} gets from {line}, not the sum"
                )
                is_entry = which[:3] == "one" and edges[0].operation.name == "getitem"
                codes = "missing-term", "overwritten-not-accumulated"  # as a return in a loop leaves
                code, other = codes if is_entry else (codes[1], "")
                yield Diagnosis(code, names, words, ONE_USE, alternative=other)


def _overwritten(value: int, edges: list[Edge]) -> Iterator[tuple[str, Rules]]:
    kinds = {_key(edge) for edge in edges}
    if all(o.name == "getitem" and value == o.inputs[0] for o, _ in edges):
        yield "in each entry the last of", _written_over(value, edges)
    if len(edges) > 1 and len(kinds) == 1:
        for edge in edges if len(edges) <= MOST_USES else [edges[0], edges[-1]]:
            yield f"one of {len(edges)} parts of", _without(other for other in edges if other is not edge)


def _written_over(value: int, edges: Sequence[Edge]) -> Rules:
    """Return the rules by which windows are assigned to the gradient of an array, one after the other."""
    got: dict[int, Any] = {}

    def rule(number: int) -> LocalRule:
        def collect(gradient: Any, _: Any, values: Sequence[Any]) -> Iterable[tuple[int, Any]]:
            got[number] = gradient
            if len(got) < len(edges):
                return []
            total = np.zeros(np.shape(values[value]))
            for operation, _ in edges:
                arrays = [values[i] for i in operation.inputs[1:]]
                total[fill(operation.options["key"], arrays)] = got[operation.number]
            got.clear()
            return [(value, total)]

        return collect

    return {edge.operation.number: rule(edge.operation.number) for edge in edges}
