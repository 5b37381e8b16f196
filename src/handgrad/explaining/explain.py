"""``handgrad.explain``: a network, or a rule, on a batch, as one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.errors import ConfigurationError
from handgrad.explaining.derivations import derive
from handgrad.explaining.describing import describe
from handgrad.explaining.explanation import Explanation
from handgrad.explaining.formulas import Formula
from handgrad.explaining.health import measure_health
from handgrad.explaining.jacobians import NotFiniteError
from handgrad.explaining.ledger import AxisNames, gradients_of, ledger
from handgrad.explaining.record import Block, ExplainedLine, Jacobian, Witness
from handgrad.explaining.state import Health
from handgrad.explaining.tracing import Trace, trace_network, trace_rule
from handgrad.explaining.witness import witnesses
from handgrad.layers import Optimiser
from handgrad.network import Network
from handgrad.rules import Rule

Pair = tuple[str, str]

SHOWN = 5_000_000  # entries that the Jacobian of one row may have to be shown unasked
SHOWN_WHOLE = 200_000  # and that of a batch


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
        A few rows, and what the network should say of them. For a rule, its arguments, in order.
    *more
        The other arguments of a rule.
    sample_weight
        How much each row counts.
    jacobians
        Of which values, as ``"z1:W1"``; by default of every rule with respect to what goes into it, for row 0.
    example
        The row whose Jacobians are wanted; None for the whole batch.
    optimiser
        How the network is trained: with it, the health says whether its steps are too long or too short.
    seed
        Of what is drawn: masks, and the upstream gradient of a rule.
    """
    if isinstance(subject, Rule):
        arrays = [x, *([t] if t is not None else []), *more]
        trace = trace_rule(subject, arrays, seed=seed)
    else:
        trace = trace_network(subject, x, t, sample_weight, seed=seed)
    explained = explain_trace(trace, [_pair(text) for text in jacobians], example)
    if isinstance(subject, Rule):
        return explained
    return replace(explained, health=measure_health(trace, subject, optimiser))


def _pair(text: str) -> Pair:
    output, colon, of = text.partition(":")
    if not colon or not output or not of:
        raise ConfigurationError(f"{text!r} names no two values", fix="as in z1:W1: of z1 with respect to W1")
    return output, of


def explain_trace(trace: Trace, asked: Sequence[Pair] = (), example: int | None = None) -> Explanation:
    """Explain a program on its batch."""
    axes = AxisNames(trace)
    gradients = {name: of for of, found in gradients_of(trace).items() for name in found}
    told = witnesses(trace)
    loss = trace.values.get("loss") if trace.program.parameters else None
    return Explanation(
        title=trace.program.title,
        rows=trace.rows,
        loss=float(loss) if loss is not None and np.isfinite(loss) else None,
        drawing=_drawing(trace),
        lines=tuple(_line(trace, axes, gradients, told, n) for n in range(len(trace.program.lines))),
        ledger=ledger(trace, axes),
        derivations=derive(trace, axes, gradients),
        jacobians=tuple(_jacobians(trace, axes, asked, example)),
        health=Health(),
    )


def _jacobians(
    trace: Trace, axes: AxisNames, asked: Sequence[Pair], example: int | None
) -> Iterator[Jacobian]:
    """Yield the Jacobians that were asked for, or else those of each rule, where they are small.

    A network's are of one row; those of a single rule are of all rows where that is little more.
    """
    for output, of in asked:
        yield describe(trace, axes, output, of, example)
    if asked:
        return
    row = 0 if example is None else example
    for node in trace.nodes:
        output = node.output.name
        for of in dict.fromkeys(node.arguments[argument].name for argument in node.rule.differentiable):
            whole = len(trace.nodes) == 1 and example is None and _entries(trace, output, of) <= SHOWN_WHOLE
            if whole or _entries(trace, output, of, rows=1) <= SHOWN:
                with suppress(NotFiniteError):
                    yield describe(trace, axes, output, of, None if whole else row)


def _entries(trace: Trace, *names: str, rows: int | None = None) -> int:
    """Return how many entries the Jacobian of two values has."""
    n = trace.rows if rows is None else rows
    return int(np.prod([n if size == "n" else int(size) for name in names for size in trace.shapes[name]]))


def _line(
    trace: Trace, axes: AxisNames, gradients: Mapping[str, str], told: Mapping[str, Witness], number: int
) -> ExplainedLine:
    line = trace.program.lines[number]
    node = trace.node_of(line.target if line.phase != "backward" else line.undoes)
    formula = Formula(trace.values, gradients, lambda shape: axes.fit(shape, node))
    known = trace.values.keys()
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
        reads=tuple(sorted(line.reads & known, key=line.expression.find)),
        tex=formula.line(line.target, line.operator, line.expression),
        witness=told.get(line.target) if line.phase == "backward" else None,
    )


def _drawing(trace: Trace) -> tuple[Block, ...]:
    """Return a block for each thing that comes with the batch, and for each rule."""
    used = {value.name for node in trace.nodes for value in node.inputs}
    blocks = [
        Block(value.name, value.kind, value.origin, (), (), "input", ())
        for value in trace.program.inputs
        if value.name in used
    ]
    for node in trace.nodes:
        lines = tuple(trace.lines_of(node))
        if not lines:
            continue
        kept = tuple(v.name for v in node.inputs if v.kind in ("parameter", "state", "mask"))
        inputs = tuple(dict.fromkeys(v.name for v in node.inputs if v.name not in kept))
        blocks.append(Block(node.output.name, node.rule.name, node.layer, inputs, kept, node.part, lines))
    return tuple(blocks)


__all__ = ["explain", "explain_trace"]
