"""``handgrad.explain``: a network, or a rule, on a batch, as one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.explaining.derivations import derive
from handgrad.explaining.explanation import Block, ExplainedLine, Explanation, Health
from handgrad.explaining.formulas import Formula
from handgrad.explaining.ledger import AxisNames, gradients_of, ledger
from handgrad.explaining.tracing import Trace, trace_network, trace_rule
from handgrad.network import Network
from handgrad.program import ProgramLine
from handgrad.rules import Rule


def explain(
    subject: Network | Rule, x: Any, y: Any = None, *more: Any, sample_weight: Any = None, seed: int = 0
) -> Explanation:
    """Explain a network, or a rule, on a batch: shapes, formulas, derivations, Jacobians, health.

    Parameters
    ----------
    subject
        What to explain.
    x, y
        A few rows, and what the network should say of them. For a rule, its arguments, in order.
    *more
        The other arguments of a rule.
    sample_weight
        How much each row counts.
    seed
        Of what is drawn: masks, and the upstream gradient of a rule.
    """
    if isinstance(subject, Rule):
        arrays = [x, *([y] if y is not None else []), *more]
        trace = trace_rule(subject, arrays, seed=seed)
    else:
        trace = trace_network(subject, x, y, sample_weight, seed=seed)
    return explain_trace(trace)


def explain_trace(trace: Trace) -> Explanation:
    """Explain a program on its batch."""
    axes = AxisNames(trace)
    gradients = {name: of for of, found in gradients_of(trace).items() for name in found}
    wanted = trace.program.parameters if trace.program.parameters else _arguments(trace)
    loss = trace.values.get("loss") if trace.program.parameters else None
    return Explanation(
        title=trace.program.title,
        rows=trace.rows,
        loss=None if loss is None else float(loss),
        drawing=_drawing(trace),
        lines=tuple(_line(trace, axes, gradients, n, line) for n, line in enumerate(trace.program.lines)),
        ledger=ledger(trace, axes),
        derivations={of: derive(trace, axes, gradients, of) for of in wanted if f"d{of}" in gradients},
        jacobians=(),
        health=Health(),
    )


def _arguments(trace: Trace) -> Sequence[str]:
    return [name for node in trace.nodes for name in node.rule.differentiable]


def _line(
    trace: Trace, axes: AxisNames, gradients: dict[str, str], number: int, line: ProgramLine
) -> ExplainedLine:
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
        blocks.append(
            Block(node.output.name, node.rule.name, node.layer, inputs, kept, node.part, lines)
        )
    return tuple(blocks)


__all__ = ["explain", "explain_trace"]
