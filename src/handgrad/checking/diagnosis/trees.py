"""What trees of Python say: what they call, name, reduce and multiply, and the same tree with a part of it changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

MOST_AXES = 5


def calls_in(node: ast.AST) -> list[ast.Call]:
    """Return every call in a tree."""
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def called(call: ast.Call) -> str:
    """Return the name of what is called, without what it belongs to."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def functions(node: ast.AST) -> set[str]:
    """Return the names of what a tree calls."""
    return {called(call) for call in calls_in(node)}


def operand(call: ast.Call) -> ast.AST | None:
    """Return what a call works on: what its method belongs to, or the first argument of NumPy's function."""
    function = call.func
    if isinstance(function, ast.Attribute) and text_of(function.value) not in ("np", "numpy"):
        return function.value
    return call.args[0] if call.args else None


def reductions(node: ast.AST) -> list[ast.Call]:
    """Return the sums and means in a tree."""
    return [call for call in calls_in(node) if called(call) in ("sum", "mean")]


def axes(node: ast.AST) -> list[str]:
    """Return every axis that is named in a tree."""
    return [
        text_of(inner.value)
        for inner in ast.walk(node)
        if isinstance(inner, ast.keyword) and inner.arg == "axis"
    ]


def is_axes(node: ast.AST) -> bool:
    """Whether a tree is a tuple of axes."""
    try:
        found = ast.literal_eval(node) if isinstance(node, ast.Tuple) else ()
    except ValueError:
        return False
    return bool(found) and all(isinstance(axis, int) and abs(axis) < MOST_AXES for axis in found)


def is_product(node: ast.AST, operator: type[ast.operator]) -> bool:
    """Whether a tree is a product of one kind."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, operator)


def multiplies(node: ast.AST) -> bool:
    """Whether a tree holds a matrix product."""
    return any(isinstance(inner, ast.MatMult) for inner in ast.walk(node))


def has_transpose(node: ast.AST) -> bool:
    """Whether a tree holds a transpose."""
    return any(isinstance(inner, ast.Attribute) and inner.attr == "T" for inner in ast.walk(node))


def same(one: ast.AST | None, other: ast.AST | None) -> bool:
    """Whether two trees say the same."""
    return one is not None and other is not None and ast.dump(one) == ast.dump(other)


class _Rewriting(ast.NodeTransformer):
    """Makes of every node of a copy what a function makes of it."""

    def __init__(self, change: Callable[[ast.AST], ast.AST]) -> None:
        self.change = change

    def visit(self, node: ast.AST) -> ast.AST:
        """Change what is inside, then the node."""
        return self.change(self.generic_visit(node))


def stripped(node: ast.AST) -> ast.AST:
    """Return a tree without its transposes."""

    def change(inner: ast.AST) -> ast.AST:
        return inner.value if isinstance(inner, ast.Attribute) and inner.attr == "T" else inner

    return _Rewriting(change).visit(copy.deepcopy(node))


def renamed(node: ast.AST, name: str, other: str) -> ast.AST:
    """Return a tree in which another method or function is called."""

    def change(inner: ast.AST) -> ast.AST:
        if isinstance(inner, ast.Attribute) and inner.attr == name:
            inner.attr = other
        return inner

    return _Rewriting(change).visit(copy.deepcopy(node))


def without_axes(node: ast.AST) -> ast.AST:
    """Return a tree in which every axis that is named is the same."""

    def change(inner: ast.AST) -> ast.AST:
        if isinstance(inner, ast.keyword) and inner.arg == "axis":
            inner.value = ast.Constant(None)
        return inner

    return _Rewriting(change).visit(copy.deepcopy(node))


def names_in(node: ast.AST) -> set[str]:
    """Return the names in a tree."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def text_of(node: ast.AST | None) -> str:
    """Return a tree as text, none as ""."""
    return ast.unparse(node) if node is not None else ""
