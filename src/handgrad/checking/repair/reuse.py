"""New code among the author's: what is in scope takes the place of whatever it equals, and what nobody reads is left out."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from handgrad.checking.repair.expressions import fill, names_in
from handgrad.checking.repair.module_source import Change, ModuleSource
from handgrad.tolerance import reordered

PLAIN = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0}  # numbers that a formula has of itself
SAME_NUMBER = 1e-12  # relative: what rounding leaves of the same number


def in_scope(node: Any, scope: Mapping[str, Any], known: dict[str, Any]) -> Any:
    """Return an expression with what is in scope for the parts that are equal to it."""
    if isinstance(node, list):
        return [in_scope(item, scope, known) for item in node]
    if isinstance(node, ast.Constant):
        return in_scope_number(node, scope)
    if not isinstance(node, ast.expr | ast.keyword) or not scope:
        return node
    if isinstance(
        node, ast.Name | ast.BinOp | ast.Call | ast.Compare | ast.Subscript | ast.Attribute | ast.UnaryOp
    ):
        with suppress(Exception):  # what the author's functions raise: it cannot be compared
            value = eval(ast.unparse(node), known)
            for text, other in scope.items():
                if equal(other, value):
                    return _settled(fill(text))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return ast.Call(node.func, in_scope(node.args, scope, known), in_scope(node.keywords, scope, known))
    return type(node)(*(in_scope(getattr(node, field), scope, known) for field in node._fields))


def _settled(node: ast.expr) -> ast.expr:
    """Mark the author's own names, which may be names of the gradient's code too."""
    for inner in ast.walk(node):
        inner.settled = True  # type: ignore[attr-defined]
    return node


def in_scope_number(node: ast.Constant, scope: Mapping[str, Any]) -> ast.expr:
    """Return what in scope a number is, or 1 minus it, where it is no formula's own."""
    if not isinstance(node.value, float) or node.value in PLAIN:
        return node
    numbers = {text: value for text, value in scope.items() if isinstance(value, float | int | np.number)}
    floats = {text: value for text, value in numbers.items() if isinstance(value, float | np.floating)}
    for text, value in floats.items():
        inverse = 1 / value if value else 0.0
        for template, number in (
            ("A", value),
            ("1 - A", 1 - value),
            ("1 / A", inverse),
            ("2 * A", 2 * value),
        ):
            if np.isclose(number, node.value, rtol=SAME_NUMBER, atol=0):
                return fill(template, A=text)
    counts = {text: value for text, value in numbers.items() if text not in floats and value > 1}
    for (text, value), (count, many) in itertools.product([("1", 1.0), *floats.items()], counts.items()):
        for template, factor in (("A / N", 1), ("A / (2 * N)", 0.5), ("2 * A / N", 2)):
            if np.isclose(
                factor * value / many, node.value, rtol=SAME_NUMBER, atol=0
            ):  # a penalty over the rows
                return fill(template, A=text, N=count)
    return node


def equal(value: Any, other: Any) -> bool:
    """Whether two arrays are the same but for rounding; numbers by themselves say too little."""
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return False
    same = value.shape == other.shape and value.dtype == other.dtype and value.size > 1
    if not same or value.dtype.kind != "f":
        return same and np.array_equal(value, other)
    return reordered(value, other)


def names_of(scope: Mapping[str, Any]) -> set[str]:
    """Return the names that the expressions in scope begin with."""
    return {text.partition(".")[0].partition("[")[0] for text in scope}


def needed(statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """Drop the lines that no result needs."""
    found = []
    for statement in reversed(statements):
        if changed_by(statement) & wanted:
            found.append(statement)
            wanted = wanted | names_in(statement)
    return found[::-1]


def changed_by(statement: ast.stmt) -> set[str]:
    """Return the names that a line assigns to, or whose array it changes."""
    targets: list[ast.AST | None] = [getattr(statement, "target", None), *getattr(statement, "targets", [])]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        targets += statement.value.args[:1]
    found = set()
    for target in targets:
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        found |= names_in(target) if target is not None else set()
    return found


def newly_unread(source: ModuleSource, function: ast.FunctionDef, change: Change) -> list[ast.stmt]:
    """Return the author's assignments in a function that a change leaves without a reader."""
    before = _unread(function)
    with source.edited(change.edits):
        return [node for node in _unread(function) if node not in before and id(node) in source.parents]


def _unread(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the assignments at the function's own level whose names nobody reads."""
    dead: list[ast.stmt] = []
    while True:
        rest = [node for node in function.body if node not in dead]
        nodes = (node for statement in rest for node in ast.walk(statement))
        read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        more = [node for node in rest if isinstance(node, ast.Assign) and not changed_by(node) & read]
        if not more:
            return dead
        dead += more
