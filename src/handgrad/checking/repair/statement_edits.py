"""Edits of whole statements: left out, moved, accumulated instead of assigned, exchanged results."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations

from handgrad.checking.repair.edit_table import EXTRA, LACKS_TERM, LOCAL, NOT_ADDED, STATE
from handgrad.checking.repair.expressions import fill
from handgrad.checking.repair.instrumentation import Observed
from handgrad.checking.repair.module_source import Change, Edit, ModuleSource


def statement_changes(source: ModuleSource, observed: Observed) -> Iterator[Change]:
    """Yield every small edit of the statements that backward runs."""
    for name in source.reachable(source.backward):
        unit = source.units[name]
        for node in ast.walk(unit):
            if isinstance(node, ast.stmt) and id(node) in observed.scopes:
                yield from _one(node, source.parameters(name))
                yield from _results(node)
            for block in ("body", "orelse"):
                statements = getattr(node, block, None)
                if isinstance(statements, list) and statements and not isinstance(node, ast.ClassDef):
                    yield from _order(statements)


def _one(node: ast.stmt, parameters: list[str]) -> Iterator[Change]:
    """Yield edits of one statement."""
    if isinstance(node, ast.Return | ast.FunctionDef | ast.Import | ast.ImportFrom):
        return
    writes_input = _base(node) in parameters
    cost = 1.4 if writes_input else 1.5 if isinstance(node, ast.AugAssign | ast.Expr) else 2.5
    added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and not writes_input
    yield Change((Edit(node, ()),), cost, EXTRA if added else STATE, LACKS_TERM)
    if isinstance(node, ast.AugAssign):
        for operator in (ast.Add(), ast.Sub(), ast.Mult(), ast.Div()):
            if not isinstance(operator, type(node.op)):
                signs = {type(operator), type(node.op)} == {ast.Add, ast.Sub}
                new = ast.AugAssign(node.target, operator, node.value)
                yield _instead(node, new, 1, "wrong-sign" if signs else LOCAL)
        yield _instead(node, ast.Assign([node.target], node.value), 1, EXTRA, NOT_ADDED)
        apart = ast.BinOp(_loaded(node.target), node.op, node.value)
        yield _instead(node, ast.Assign([node.target], apart), 2, STATE)
        if isinstance(node.target, ast.Subscript) and isinstance(node.op, ast.Add):
            yield _added_at(node, node.target, node.value)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Subscript | ast.Name):
            yield _instead(node, ast.AugAssign(target, ast.Add(), node.value), 1, NOT_ADDED, EXTRA)
        if isinstance(target, ast.Subscript):
            yield _added_at(node, target, node.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) == 3:
        array, index, value = node.value.args
        if ast.unparse(node.value.func).endswith("add.at"):
            target = ast.Subscript(array, index, ast.Store())
            yield _instead(node, ast.AugAssign(target, ast.Add(), value), 1, NOT_ADDED)
            yield _instead(node, ast.Assign([target], value), 1, NOT_ADDED)


def _results(node: ast.stmt) -> Iterator[Change]:
    """Yield two entries exchanged: of a dictionary, of a tuple, of the names assigned to."""
    indices = {id(inner.slice) for inner in ast.walk(node) if isinstance(inner, ast.Subscript)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and inner is not node:
            return
        if id(inner) in indices:
            continue
        items: list[ast.expr] = []
        if isinstance(inner, ast.Dict):
            items = inner.values
        elif isinstance(inner, ast.Tuple | ast.List):
            items = inner.elts
        elif isinstance(inner, ast.Call):
            items = [keyword.value for keyword in inner.keywords]
        for a, b in combinations(items, 2):
            yield Change((Edit(a, b), Edit(b, a)), 1.3, "swapped-gradients", "swapped-gradients")


def _order(statements: list[ast.stmt]) -> Iterator[Change]:
    """Yield one statement moved to another place of its block."""
    for i, node in enumerate(statements):
        if isinstance(node, ast.Return):
            continue
        for j, other in enumerate(statements):
            if j not in (i, i - 1) and len(statements) <= 12:
                new = (node, other) if j < i else (other, node)
                if not (j > i and isinstance(other, ast.Return)):
                    yield Change((Edit(node, ()), Edit(other, new)), 2 + 0.1 * abs(i - j), STATE, STATE)


def _base(node: ast.stmt) -> str:
    """Return the name of the array that a statement writes into, if any."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    inside = isinstance(node, ast.AugAssign) or isinstance(target, ast.Subscript)
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if inside and isinstance(target, ast.Name) else ""


def _added_at(node: ast.stmt, target: ast.Subscript, value: ast.expr) -> Change:
    call = fill("np.add.at(A, I, V)", A=target.value, I=target.slice, V=value)
    return _instead(node, ast.Expr(call), 2, NOT_ADDED)


def _instead(node: ast.stmt, new: ast.stmt, cost: float, undoes: str, makes: str = "") -> Change:
    return Change((Edit(node, (new,)),), cost, undoes, makes or undoes)


def _loaded(target: ast.expr) -> ast.expr:
    """Return what is assigned to, to be read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return target
