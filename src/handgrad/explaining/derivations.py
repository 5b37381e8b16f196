"""The chain rule: the backward lines between the loss and a value, and their product."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Set

import numpy as np

from handgrad.explaining.formulas import Formula, partial
from handgrad.explaining.ledger import AxisNames
from handgrad.explaining.record import Derivation, Factor
from handgrad.explaining.tracing import Trace
from handgrad.program import ProgramLine
from handgrad.rules.text import backward_slice, substitute

LONGEST = 400  # parts of a product's syntax tree: a longer one keeps its names


def derive(trace: Trace, axes: AxisNames, gradients: Mapping[str, str]) -> dict[str, Derivation]:
    """Return the derivation of each gradient, by the value it belongs to: parameters first.

    Parameters
    ----------
    trace
        The program on its batch.
    axes
        Their letters.
    gradients
        The value that each gradient belongs to.
    """
    backward = [(n, line) for n, line in enumerate(trace.program.lines) if line.phase == "backward"]
    factors = {n: _factor(trace, axes, gradients, n, line) for n, line in backward}
    formula = Formula(trace.values, gradients, lambda shape: axes.fit(shape, None), braces=True)
    given = {"dloss", *(value.name for value in trace.program.inputs if value.kind == "upstream")}
    made = {line.target for _, line in backward if line.reads}
    found: dict[str, Derivation] = {}
    for of in (*trace.program.parameters, *gradients.values()):
        target = f"d{of}"
        if of in found or target not in made:
            continue
        numbered = path(trace, target)
        whole = product([line for _, line in numbered], given)
        tex = f"{formula.name(target)} = {formula.write(whole)}"
        found[of] = Derivation(of, tuple(factors[n] for n, _ in numbered), tex, f"{target} = {whole}")
    return found


def path(trace: Trace, target: str) -> list[tuple[int, ProgramLine]]:
    """Return the numbered backward lines that lead to a gradient, in order."""
    lines = backward_slice(trace.program.phase("backward"), {target})
    return [(number, line) for number, line in enumerate(trace.program.lines) if line in lines]


def product(lines: list[ProgramLine], given: Set[str]) -> str:
    """Put lines into one another; what is read more than once keeps its name, and so does what is no gradient.

    Parameters
    ----------
    lines
        In order.
    given
        The gradients they begin with.
    """
    counts = Counter(node.id for line in lines for node in ast.walk(line.tree) if isinstance(node, ast.Name))
    carried = set(given)
    known: dict[str, ast.expr] = {}
    for line in lines:
        tree = substitute(line.tree, known)
        short = sum(1 for _ in ast.walk(tree)) < LONGEST
        if line.reads & carried:
            carried.add(line.target)
        if line.target in carried and counts[line.target] == 1 and short:
            known[line.target] = tree
    return ast.unparse(tree)


def _factor(
    trace: Trace, axes: AxisNames, gradients: Mapping[str, str], number: int, line: ProgramLine
) -> Factor:
    node = next((node for node in trace.nodes if node.output.name == line.undoes), None)
    formula = Formula(trace.values, gradients, lambda shape: axes.fit(shape, node), braces=True)
    of = gradients.get(line.target, "")
    symbol = partial(line.undoes, of) if of and line.rule else formula.name(line.target)
    return Factor(
        line=number,
        symbol=symbol,
        tex=f"{formula.name(line.target)} = {formula.write(line.expression)}",
        text=factor_text(trace, line),
        sizes=np.shape(trace.values[line.target]),
        reason=line.reason,
    )


def factor_text(trace: Trace, line: ProgramLine) -> str:
    """Show a line with the shape of each value it reads, in two rows of text.

    The names that are transposed have the shape that enters the product.
    """
    above, below, position = f"{line.target} = ", "", 0
    above += line.expression
    start = len(line.target) + 3
    marks = [
        (start + node.col_offset, shape)
        for node in _operands(line.tree)
        if (shape := Formula(trace.values, {}, lambda s: ()).shape(node))
    ]
    for column, shape in sorted(marks):
        written = "×".join(map(str, shape))
        position = max(column, len(below) + (1 if below else 0))
        below = below.ljust(position) + written
    return f"{above}\n{below}" if below else above


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return the outermost operands of products: names, transposes, and what stands in brackets."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult | ast.Div):
        return _operands(node.left) + _operands(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return _operands(node.func.value) if ast.unparse(node.func.value) != "np" else [node]
    if isinstance(node, ast.Constant):
        return []
    return [node]
