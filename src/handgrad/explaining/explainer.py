"""``handgrad.explain``: a network, or a rule, on a batch, as one record."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.arguments import Seed, judged
from handgrad.errors import ConfigurationError
from handgrad.explaining.batch_gradient import telling_row
from handgrad.explaining.execution import Execution, execute_network, execute_rule
from handgrad.explaining.health import measure_health
from handgrad.explaining.jacobians import Dependency, NotFiniteError, jacobian_record
from handgrad.explaining.line_checks import witnesses
from handgrad.explaining.live_program import live_program
from handgrad.explaining.record import (
    Block,
    Derivation,
    ExplainedLine,
    Explanation,
    Factor,
    Health,
    Jacobian,
    Witness,
)
from handgrad.explaining.shape_ledger import AxisNames, ledger
from handgrad.explaining.tex import Formula, derivative_to_tex
from handgrad.layers import Node, Optimiser
from handgrad.network import Network
from handgrad.program import ProgramLine
from handgrad.program.lines_in_python import evaluate
from handgrad.rules import Rule
from handgrad.rules.rule_source import backward_slice, substitute

MAX_UNASKED = 5_000_000  # entries of a row's Jacobian that is shown unasked: a second or so
MAX_UNASKED_BATCH = 200_000  # and of a whole batch's
MAX_NODES = 400  # of a product's syntax tree: a longer one is written with the names in it


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
        Of which values, as ``"z1:W1"``; by default of every rule with respect to its inputs, for a row that
        sends a gradient through most of them.
    example
        The row whose Jacobians are wanted; None for the whole batch.
    optimiser
        How the network is trained: with it, the health includes whether its steps are too long or too short.
    seed
        Of the random draws: masks, and the upstream gradient of a rule.
    """
    pairs = []
    for text in jacobians:
        output, _, of = text.partition(":")
        if not output or not of:
            raise ConfigurationError(
                f"{text!r} names no two values", fix="as in z1:W1: of z1 with respect to W1"
            )
        pairs.append((output, of))
    if isinstance(subject, Rule):
        arrays = [x, *([t] if t is not None else []), *more]
        found = explain_execution(execute_rule(subject, arrays, seed=seed), pairs, example)
        return replace(found, introduction=subject.forward.doc.replace("``", ""))
    execution = execute_network(subject, x, t, sample_weight, seed=seed)
    found = explain_execution(execution, pairs, example)
    return replace(
        found,
        lines=(*found.lines, *explain_updates(execution, subject, optimiser, len(found.lines))),
        health=measure_health(execution, subject, optimiser),
        live=live_program(execution, subject, optimiser),
    )


def explain_updates(
    execution: Execution, network: Network, optimiser: Optimiser | None, start: int
) -> Iterator[ExplainedLine]:
    """Yield the optimiser's lines, plain SGD's if none is given: they are not run, the weights stay as they are."""
    program = network.program(*([optimiser] if optimiser else []), weighted="w" in execution.given)
    scope = {"learning_rate": 1.0, **{name: np.zeros(shape) for name, shape in program.slots.items()}}
    known = execution.values | scope
    formula = Formula(known, execution.gradient_of, lambda shape: tuple(map(str, shape)))
    with np.errstate(all="ignore"):
        for number, line in enumerate(program.phase("update"), start):
            if line.operator == "=":
                known[line.target] = evaluate(line.expression, known)
            tex = formula.line(line.place, line.operator, line.expression)
            yield replace(_plain_line(number, line, known.keys()), tex=tex)


def _plain_line(number: int, line: ProgramLine, known: Set[str]) -> ExplainedLine:
    """Return a line with what it reads of the known values, without its formula."""
    read = line.reads & known
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
        reads=tuple(dict.fromkeys(name for name in re.findall(r"\w+", line.expression) if name in read)),
        tex="",
        index=line.index,
        loop=line.loop,
    )


def explain_execution(
    execution: Execution, pairs: Sequence[tuple[str, str]] = (), example: int | None = None
) -> Explanation:
    """Explain a program on its batch, with the Jacobians of these pairs of values."""
    axes = AxisNames(execution)
    checked = witnesses(execution)
    loss = execution.values.get("loss") if execution.program.parameters else None
    return Explanation(
        title=execution.program.title,
        rows=execution.rows,
        loss=float(loss) if loss is not None and np.isfinite(loss) else None,
        drawing=tuple(_drawing(execution)),
        lines=tuple(
            _line(execution, axes, checked, number, line)
            for number, line in enumerate(execution.program.lines)
        ),
        ledger=ledger(execution, axes),
        derivations=_derive(execution, axes),
        jacobians=tuple(_jacobians(execution, axes, pairs, example)),
        health=Health(),
    )


def _jacobians(
    execution: Execution, axes: AxisNames, pairs: Sequence[tuple[str, str]], example: int | None
) -> Iterator[Jacobian]:
    """Yield the Jacobians that were asked for, or else those of each rule alone, where they are small.

    A network's are of one row; those of a single rule are of all rows where that is little more.
    """
    for output, of in pairs:
        yield jacobian_record(execution, axes, output, of, example)
    if pairs:
        return
    unasked = [
        (node.output.name, of)
        for node in execution.nodes
        for of in dict.fromkeys(node.arguments[argument].name for argument in node.rule.differentiable)
    ]
    if not unasked:
        return
    single = len(execution.nodes) == 1 and example is None
    if example is None:
        example = telling_row([Dependency(execution, output, of, direct=True) for output, of in unasked])
    for output, of in unasked:
        whole = single and _entries(execution, output, of, execution.rows) <= MAX_UNASKED_BATCH
        if whole or _entries(execution, output, of, 1) <= MAX_UNASKED:
            with suppress(NotFiniteError):
                yield jacobian_record(execution, axes, output, of, None if whole else example, direct=True)


def _entries(execution: Execution, output: str, of: str, rows: int) -> int:
    """Return how many entries the Jacobian of two values has."""
    sizes = (*execution.shapes[output], *execution.shapes[of])
    return int(np.prod([rows if size == "n" else int(size) for size in sizes]))


def _formula(execution: Execution, axes: AxisNames, node: Node | None, *, braces: bool = False) -> Formula:
    return Formula(
        execution.values, execution.gradient_of, lambda shape: axes.fit(shape, node), braces=braces
    )


def _line(
    execution: Execution, axes: AxisNames, checked: Mapping[str, Witness], number: int, line: ProgramLine
) -> ExplainedLine:
    node = execution.node_of(line.undoes if line.phase == "backward" else line.target)
    backward = line.phase == "backward"
    last = [each.target for each in execution.backward if each.undoes == line.undoes and each.rule][-1:]
    return replace(
        _plain_line(number, line, execution.values.keys()),
        tex=_formula(execution, axes, node).line(line.place, line.operator, line.expression),
        witness=checked.get(line.target) if backward else None,
        derived=_derivation_of(node.rule) if backward and node and last == [line.target] else "",
    )


def _derivation_of(rule: Rule) -> str:
    """Return the section of a rule's docstring that derives its gradient, or ""."""
    found = re.search(r"^Gradient\n((?:    .*\n)+)", f"{inspect.getdoc(rule) or ''}\n", re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _drawing(execution: Execution) -> Iterator[Block]:
    """Yield a block for each input of the batch, and for each rule."""
    used = {value.name for node in execution.nodes for value in node.inputs}
    for value in execution.program.inputs:
        if value.name in used:
            yield Block(value.name, value.kind, value.origin, (), (), "input", ())
    for node in execution.nodes:
        if lines := execution.lines_of(node):
            own = tuple(v.name for v in node.inputs if v.kind in ("parameter", "state", "mask"))
            inputs = tuple(dict.fromkeys(v.name for v in node.inputs if v.name not in own))
            yield Block(node.output.name, node.rule.name, node.layer, inputs, own, node.part, lines)


def _derive(execution: Execution, axes: AxisNames) -> dict[str, Derivation]:
    """Return the chain rule for each gradient, by the value it belongs to: parameters first."""
    backward = {n: line for n, line in enumerate(execution.program.lines) if line.phase == "backward"}
    factors = {number: _factor(execution, axes, number, line) for number, line in backward.items()}
    formula = _formula(execution, axes, None, braces=True)
    given = {"dloss", *(value.name for value in execution.program.inputs if value.kind == "upstream")}
    made = {line.target for line in execution.backward if line.reads}
    found: dict[str, Derivation] = {}
    for of in dict.fromkeys((*execution.program.parameters, *execution.gradient_of.values())):
        target = f"d{of}"
        if target in made:
            passed = backward_slice(execution.backward, {target})
            whole = _product(passed, given)
            tex = formula.line(target, "=", whole)
            path = tuple(factors[number] for number, line in backward.items() if line in passed)
            found[of] = Derivation(of, path, tex, f"{target} = {whole}")
    return found


def _product(lines: Sequence[ProgramLine], given: Set[str]) -> str:
    """Substitute lines, which begin with the gradients ``given``, into one another.

    A value that is read more than once keeps its name, and so does what is no gradient.
    """
    counts = Counter(node.id for line in lines for node in ast.walk(line.tree) if isinstance(node, ast.Name))
    carried = set(given)
    filled = {line.target for line in lines if line.index}
    known: dict[str, ast.expr] = {}
    for line in lines:
        tree = substitute(line.tree, known)
        if line.reads & carried:
            carried.add(line.target)
        short = sum(1 for _ in ast.walk(tree)) < MAX_NODES
        if line.target in carried - filled and counts[line.target] == 1 and short:
            known[line.target] = tree
    return ast.unparse(tree)


def _factor(execution: Execution, axes: AxisNames, number: int, line: ProgramLine) -> Factor:
    node = next((node for node in execution.nodes if node.output.name == line.undoes), None)
    formula = _formula(execution, axes, node, braces=True)
    of = execution.gradient_of.get(line.target, "")
    return Factor(
        line=number,
        symbol=derivative_to_tex(line.undoes, of) if of and line.rule else formula.name(line.target),
        tex=formula.line(line.place, line.operator, line.expression),
        text=_with_shapes(line, formula),
        sizes=np.shape(execution.values[line.target]),
        reason=line.reason,
    )


def _with_shapes(line: ProgramLine, formula: Formula) -> str:
    """Show a line with the shape of each operand under it, in two rows of text.

    The names that are transposed have the shape that enters the product.
    """
    above, below = f"{line.place} {line.operator} ", ""
    for operand in sorted(_operands(line.tree), key=lambda each: each.col_offset):
        if shape := formula.shape(operand):
            column = max(len(above) + operand.col_offset, len(below) + bool(below))
            below = below.ljust(column) + "×".join(map(str, shape))
    return f"{above}{line.expression}" + (f"\n{below}" if below else "")


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the outermost operands of products: names, transposes, and what is in brackets."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult | ast.Div):
        return _operands(node.left) + _operands(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return _operands(node.func.value) if ast.unparse(node.func.value) != "np" else [node]
    return [] if isinstance(node, ast.Constant) else [node]
