"""The chain rule: the backward lines between the loss and a value, and their product."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence, Set

import numpy as np

from handgrad.explaining.execution import Execution
from handgrad.explaining.record import Derivation, Factor
from handgrad.explaining.shape_ledger import AxisNames
from handgrad.explaining.tex import Formula, derivative_to_tex
from handgrad.program import ProgramLine
from handgrad.rules.rule_source import backward_slice, substitute

MAX_NODES = 400  # of a product's syntax tree: a longer one is written with the names in it


def derive(execution: Execution, axes: AxisNames, gradients: Mapping[str, str]) -> dict[str, Derivation]:
    """Return the derivation of each gradient, by the value it belongs to: parameters first.

    ``gradients`` are the values that each gradient belongs to.
    """
    backward = {n: line for n, line in enumerate(execution.program.lines) if line.phase == "backward"}
    factors = {number: _factor(execution, axes, gradients, number) for number in backward}
    formula = Formula(execution.values, gradients, lambda shape: axes.fit(shape, None), braces=True)
    given = {"dloss", *(value.name for value in execution.program.inputs if value.kind == "upstream")}
    made = {line.target for line in execution.backward if line.reads}
    found: dict[str, Derivation] = {}
    for of in dict.fromkeys((*execution.program.parameters, *gradients.values())):
        target = f"d{of}"
        if target in made:
            passed = backward_slice(execution.backward, {target})
            whole = product(passed, given)
            tex = formula.line(target, "=", whole)
            path = tuple(factors[number] for number, line in backward.items() if line in passed)
            found[of] = Derivation(of, path, tex, f"{target} = {whole}")
    return found


def product(lines: Sequence[ProgramLine], given: Set[str]) -> str:
    """Substitute lines into one another.

    A value that is read more than once keeps its name, and so does what is no gradient.

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
        if line.reads & carried:
            carried.add(line.target)
        short = sum(1 for _ in ast.walk(tree)) < MAX_NODES
        if line.target in carried and counts[line.target] == 1 and short:
            known[line.target] = tree
    return ast.unparse(tree)


def _factor(execution: Execution, axes: AxisNames, gradients: Mapping[str, str], number: int) -> Factor:
    line = execution.program.lines[number]
    node = next((node for node in execution.nodes if node.output.name == line.undoes), None)
    formula = Formula(execution.values, gradients, lambda shape: axes.fit(shape, node), braces=True)
    of = gradients.get(line.target, "")
    return Factor(
        line=number,
        symbol=derivative_to_tex(line.undoes, of) if of and line.rule else formula.name(line.target),
        tex=formula.line(line.target, "=", line.expression),
        text=_with_shapes(line, formula),
        sizes=np.shape(execution.values[line.target]),
        reason=line.reason,
    )


def _with_shapes(line: ProgramLine, formula: Formula) -> str:
    """Show a line with the shape of each operand under it, in two rows of text.

    The names that are transposed have the shape that enters the product.
    """
    above, below = f"{line.target} = ", ""
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
