"""The chain rule for one parameter: the backward lines between the loss and it, and their product."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import numpy as np

from handgrad.explaining.explanation import Derivation, Factor
from handgrad.explaining.formulas import Formula, partial
from handgrad.explaining.ledger import AxisNames
from handgrad.explaining.tracing import Trace
from handgrad.program import ProgramLine

LONGEST = 400  # parts of a product's syntax tree: a longer one keeps its names


def derive(trace: Trace, axes: AxisNames, gradients: Mapping[str, str], of: str) -> Derivation:
    """Return the derivation of a value's gradient.

    Parameters
    ----------
    trace
        The program on its batch.
    axes
        Their letters.
    gradients
        The value that each gradient belongs to.
    of
        The value: a parameter, as a rule.
    """
    numbered = path(trace, f"d{of}")
    factors = tuple(_factor(trace, axes, gradients, number, line) for number, line in numbered)
    whole = product([line for _, line in numbered])
    formula = Formula(trace.values, gradients, lambda shape: axes.fit(shape, None), braces=True)
    text = f"d{of} = {whole}"
    return Derivation(of, factors, f"{formula.name(f'd{of}')} = {formula.write(whole)}", text)


def path(trace: Trace, target: str) -> list[tuple[int, ProgramLine]]:
    """Return the numbered backward lines that lead to a gradient, in order."""
    needed, found = {target}, []
    for number, line in reversed(list(enumerate(trace.program.lines))):
        if line.phase == "backward" and line.target in needed:
            found.append((number, line))
            needed |= line.reads
    return found[::-1]


def product(lines: list[ProgramLine]) -> str:
    """Put lines into one another; what is read more than once, and what needs no gradient, keeps its name."""
    counts = {line.target: sum(_count(other, line.target) for other in lines) for line in lines}
    carried: set[str] = set()
    known: dict[str, ast.expr] = {}
    for line in lines:
        tree = _Put(known).visit(ast.parse(line.expression, mode="eval").body)
        short = sum(1 for _ in ast.walk(tree)) < LONGEST
        upstream = not carried or bool(line.reads & carried)
        carried |= {line.target} if upstream else set()
        if upstream and counts[line.target] == 1 and short:
            known[line.target] = tree
    return ast.unparse(tree)


def _count(line: ProgramLine, name: str) -> int:
    tree = ast.walk(ast.parse(line.expression))
    return sum(isinstance(node, ast.Name) and node.id == name for node in tree)


class _Put(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802 - as ast has it
        return self.known.get(node.id, node)


def _factor(
    trace: Trace, axes: AxisNames, gradients: Mapping[str, str], number: int, line: ProgramLine
) -> Factor:
    node = next((node for node in trace.nodes if node.output.name == line.undoes), None)
    formula = Formula(trace.values, gradients, lambda shape: axes.fit(shape, node), braces=True)
    of = gradients.get(line.target, "")
    if of and line.rule:
        symbol = partial(line.undoes, of)
    else:
        symbol = formula.name(line.target)
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
        for node in _operands(ast.parse(line.expression, mode="eval").body)
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

