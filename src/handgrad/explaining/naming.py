"""What a Jacobian's stored form is called in the program: the value, or the part of a line, with its numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.explaining.jacobians import Between
from handgrad.explaining.structures import Stored
from handgrad.layers import Node
from handgrad.program.running import Scope, evaluate, run_lines
from handgrad.program.writing import write_rule
from handgrad.rules.text import substitute

Array = NDArray[Any]

CLOSE = 1e-8


def name_stored(between: Between, stored: Stored) -> str:
    """Say in the program's words what is stored; the shape alone where no value has these numbers.

    Parameters
    ----------
    between
        The two values.
    stored
        What was recognised of their Jacobian.
    """
    if stored.kind == "zero":
        return "0"
    named = list(_candidates(between))
    axes = [axis for axis in stored.axes if stored.low_rank is None or axis in stored.outputs]
    in_order = np.transpose(stored.core.reshape([stored.sizes[axis] for axis in axes]), np.argsort(axes))
    core = name_of(in_order, named) or f"{_shown(in_order)} numbers"
    if stored.kind == "diagonal":
        return "I" if core == "1" else f"diag({core})"
    if stored.kind == "kronecker":
        return f"{core} ⊗ I"
    if stored.kind != "diagonal plus low rank" or stored.low_rank is None:
        return core
    return f"diag({core}) {_name_product(stored.low_rank, named)}"


def name_of(array: Array, named: list[tuple[str, Array]]) -> str:
    """Return the name of an array, or "" when none has its numbers.

    Examples
    --------
    >>> name_of(np.array([[1.0, 2.0]]), [("x", np.array([1.0, 2.0]))])
    'x'
    """
    wanted = np.squeeze(array)
    size = float(np.abs(wanted).max(initial=0)) or 1.0
    for name, value in named:
        found = np.squeeze(value)
        same = found.ndim and found.shape == wanted.shape[wanted.ndim - found.ndim :]
        if same and np.abs(found - wanted).max() <= CLOSE * size:
            return name
    if np.ptp(wanted) > CLOSE * size:
        return ""
    number = float(wanted.flat[0])
    single = (
        name for name, value in named if value.size == 1 and abs(value.flat[0] - number) <= CLOSE * size
    )
    return "1" if abs(number - 1) <= CLOSE else next(single, f"{number:.4g}")


def _name_product(factors: tuple[Array, Array], named: list[tuple[str, Array]]) -> str:
    """Name a product of low rank: ``- y yᵀ``, or its rank."""
    left, right = factors
    rank = left.shape[-1]
    whole = left @ right.swapaxes(-1, -2)
    size = float(np.abs(whole).max())
    for name, value in named:
        if rank == 1 and np.squeeze(value).shape == np.squeeze(left).shape:
            vector = value.reshape(left.shape)
            for sign, word in ((-1, "-"), (1, "+")):
                if np.abs(sign * vector @ vector.swapaxes(-1, -2) - whole).max() <= CLOSE * size:
                    return f"{word} {name} {name}ᵀ"
    return f"+ U Vᵀ, of rank {rank}"


def _candidates(between: Between) -> Iterator[tuple[str, Array]]:
    """Yield the values, and the parts of backward lines, of the one rule between the two, with their names."""
    if len(between.nodes) != 1:
        return
    (node,) = between.nodes
    scope, expressions = _rule_scope(between, node)
    row = between.example
    for argument, value in node.arguments.items():
        if node.rule.forward.kinds[argument] == "index":
            indices = between.trace.exact[value.name]
            name = value.name if row is None else f"{value.name}[{row}]"
            rows = indices if row is None else indices[row]
            yield f"I[{name}]", np.eye(len(between.trace.exact[between.input]))[rows]
    for text in dict.fromkeys(expressions):
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(evaluate(text, scope), np.float64)
        except (TypeError, ValueError, IndexError, NameError, AttributeError):
            continue  # what an upstream of ones does not go through
        own = text if text.isidentifier() else f"({text})"
        if row is not None and found.ndim and found.shape[0] == between.trace.rows:
            found, text, own = found[row], f"{own}[{row}]", f"{own}[{row}]"
        yield text, found
        if found.ndim == 2:
            yield f"{own}.T", found.T


def _rule_scope(between: Between, node: Node) -> tuple[Scope, list[str]]:
    """Return the values a rule's backward lines know, and what to look at: names first, then parts of lines."""
    program = write_rule(node)
    upstream = f"d{node.output.name}"
    exact = between.trace.exact
    scope = run_lines(
        program.phase("forward", "loss"), {value.name: exact[value.name] for value in node.inputs}
    )
    whole, parts, helpers = [], [], set()
    carried = {upstream}
    for line in program.phase("backward"):
        if line.reads & carried:
            carried.add(line.target)
        else:
            scope[line.target] = evaluate(line.expression, scope)
            helpers.add(line.target)
        if line.target == f"d{between.input}":
            whole.append(ast.unparse(_WithoutUpstream(upstream).visit(substitute(line.tree, {}))))
        parts += [ast.unparse(part) for part in ast.walk(line.tree) if _is_free(part, carried)]
    kept = {node.names.get(name, name) for name in node.rule.kept}
    names = [name for name in scope if name in kept or name in helpers]
    products = [f"{one} * {other}" for one, other in combinations(names, 2)]
    return scope, [*names, *whole, *parts, *products]


def _is_free(part: ast.AST, carried: set[str]) -> bool:
    """Whether a part of a line is an expression without the upstream gradient."""
    if not isinstance(part, ast.BinOp | ast.Compare | ast.Call | ast.Name):
        return False
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    return not names & carried and names != {"np"}


class _WithoutUpstream(ast.NodeTransformer):
    """Leaves the upstream gradient out of a product: what it is multiplied by stays."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(1) if node.id == self.upstream else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_upstream = isinstance(node.value, ast.Name) and node.value.id == self.upstream
        return ast.Constant(1) if is_upstream else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[1] if ast.unparse(node.func) == "np.full_like" else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult) and _is_one(node.left):
            return node.right
        return node.left if isinstance(node.op, ast.Mult | ast.Div) and _is_one(node.right) else node


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _shown(core: Array) -> str:
    return "×".join(map(str, core.shape)) or "1"
