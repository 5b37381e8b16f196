"""``handgrad.explain``: a network, or a rule, on a batch, as one record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.errors import ConfigurationError
from handgrad.explaining.derivations import derive
from handgrad.explaining.execution import Execution, execute_network, execute_rule
from handgrad.explaining.health import measure_health
from handgrad.explaining.jacobians import NotFiniteError, jacobian_record
from handgrad.explaining.line_checks import witnesses
from handgrad.explaining.record import Block, ExplainedLine, Explanation, Health, Jacobian, Witness
from handgrad.explaining.shape_ledger import AxisNames, gradients_of, ledger
from handgrad.explaining.tex import Formula
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.rules import Rule

MAX_UNASKED = 5_000_000  # entries of a row's Jacobian that is shown unasked: a second or so
MAX_UNASKED_BATCH = 200_000  # and of a whole batch's


@judged
def explain(
    subject: Network | Rule,
    x: Any,
    t: Any = None,
    *more: Any,
    sample_weight: Any = None,
    jacobians: Sequence[str] = (),
    example: Seed | None = None,
    optimiser: Optimiser | None = None,
    seed: Seed = 0,
) -> Explanation:
    """Explain a network, or a rule, on a batch: shapes, formulas, derivations, Jacobians, health.

    Parameters
    ----------
    subject
        What to explain.
    x, t
        A few rows, and their targets. For a rule, its arguments, in order.
    *more
        The other arguments of a rule.
    sample_weight
        A weight for each row.
    jacobians
        Of which values, as ``"z1:W1"``; by default of every rule with respect to its inputs, for row 0.
    example
        The row whose Jacobians are wanted; None for the whole batch.
    optimiser
        How the network is trained: with it, the health includes whether its steps are too long or too short.
    seed
        Of the random draws: masks, and the upstream gradient of a rule.
    """
    pairs = [_pair(text) for text in jacobians]
    if isinstance(subject, Rule):
        arrays = [x, *([t] if t is not None else []), *more]
        return explain_execution(execute_rule(subject, arrays, seed=seed), pairs, example)
    execution = execute_network(subject, x, t, sample_weight, seed=seed)
    health = measure_health(execution, subject, optimiser)
    return replace(explain_execution(execution, pairs, example), health=health)


def _pair(text: str) -> tuple[str, str]:
    output, colon, of = text.partition(":")
    if not colon or not output or not of:
        raise ConfigurationError(f"{text!r} names no two values", fix="as in z1:W1: of z1 with respect to W1")
    return output, of


def explain_execution(
    execution: Execution, pairs: Sequence[tuple[str, str]] = (), example: int | None = None
) -> Explanation:
    """Explain a program on its batch, with the Jacobians of these pairs of values."""
    axes = AxisNames(execution)
    gradients = {name: of for of, found in gradients_of(execution).items() for name in found}
    checked = witnesses(execution)
    loss = execution.values.get("loss") if execution.program.parameters else None
    return Explanation(
        title=execution.program.title,
        rows=execution.rows,
        loss=float(loss) if loss is not None and np.isfinite(loss) else None,
        drawing=_drawing(execution),
        lines=tuple(
            _line(execution, axes, gradients, checked, n) for n in range(len(execution.program.lines))
        ),
        ledger=ledger(execution, axes),
        derivations=derive(execution, axes, gradients),
        jacobians=tuple(_jacobians(execution, axes, pairs, example)),
        health=Health(),
    )


def _jacobians(
    execution: Execution, axes: AxisNames, pairs: Sequence[tuple[str, str]], example: int | None
) -> Iterator[Jacobian]:
    """Yield the Jacobians that were asked for, or else those of each rule, where they are small.

    A network's are of one row; those of a single rule are of all rows where that is little more.
    """
    for output, of in pairs:
        yield jacobian_record(execution, axes, output, of, example)
    if pairs:
        return
    single = len(execution.nodes) == 1 and example is None
    for node in execution.nodes:
        output = node.output.name
        for of in dict.fromkeys(node.arguments[argument].name for argument in node.rule.differentiable):
            whole = single and _entries(execution, output, of, execution.rows) <= MAX_UNASKED_BATCH
            if whole or _entries(execution, output, of, 1) <= MAX_UNASKED:
                with suppress(NotFiniteError):
                    yield jacobian_record(execution, axes, output, of, None if whole else example or 0)


def _entries(execution: Execution, output: str, of: str, rows: int) -> int:
    """Return how many entries the Jacobian of two values has."""
    sizes = (*execution.shapes[output], *execution.shapes[of])
    return int(np.prod([rows if size == "n" else int(size) for size in sizes]))


def _line(
    execution: Execution,
    axes: AxisNames,
    gradients: Mapping[str, str],
    checked: Mapping[str, Witness],
    number: int,
) -> ExplainedLine:
    line = execution.program.lines[number]
    node = execution.node_of(line.undoes if line.phase == "backward" else line.target)
    formula = Formula(execution.values, gradients, lambda shape: axes.fit(shape, node))
    known = line.reads & execution.values.keys()
    return ExplainedLine(
        number=number,
        target=line.target,
        operator=line.operator,
        expression=line.expression,
        phase=line.phase,
        layer=line.layer,
        rule=line.rule,
        reason=line.reason,
        undoes=line.undoes,
        reads=tuple(dict.fromkeys(name for name in re.findall(r"\w+", line.expression) if name in known)),
        tex=formula.line(line.target, line.operator, line.expression),
        witness=checked.get(line.target) if line.phase == "backward" else None,
    )


def _drawing(execution: Execution) -> tuple[Block, ...]:
    """Return a block for each input of the batch, and for each rule."""
    used = {value.name for node in execution.nodes for value in node.inputs}
    blocks = [
        Block(value.name, value.kind, value.origin, (), (), "input", ())
        for value in execution.program.inputs
        if value.name in used
    ]
    for node in execution.nodes:
        if lines := execution.lines_of(node):
            own = tuple(v.name for v in node.inputs if v.kind in ("parameter", "state", "mask"))
            inputs = tuple(dict.fromkeys(v.name for v in node.inputs if v.name not in own))
            name, rule = node.output.name, node.rule.name
            blocks.append(Block(name, rule, node.layer, inputs, own, node.part, lines))
    return tuple(blocks)
