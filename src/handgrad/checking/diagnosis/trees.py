"""What trees of Python say: what they call, name, reduce and multiply, and the same tree with a part of it changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator


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


def nameless(node: ast.AST) -> ast.AST:
    """Return a tree in which every name, of a variable or an attribute, is the same."""

    def change(inner: ast.AST) -> ast.AST:
        if isinstance(inner, ast.Name):
            return ast.Name("v", inner.ctx)
        if isinstance(inner, ast.Attribute):
            inner.attr = "v"
        return inner

    return _Rewriting(change).visit(copy.deepcopy(node))


def without_factor(node: ast.AST, name: str) -> ast.AST:
    """Return a tree without its multiplications by a variable."""

    def change(inner: ast.AST) -> ast.AST:
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            return inner.left if isinstance(inner.right, ast.Name) and inner.right.id == name else inner
        return inner

    return _Rewriting(change).visit(copy.deepcopy(node))


def without_copies(node: ast.AST | None) -> ast.AST | None:
    """Return a tree without the copies it makes."""

    def change(inner: ast.AST) -> ast.AST:
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and inner.func.attr == "copy"
        ):
            return inner.func.value
        return inner

    return _Rewriting(change).visit(copy.deepcopy(node)) if node is not None else None


def leading(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that an expression begins with: of ``x.mean(axis=0)[None] * y`` the mean."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node
            node = node.func.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        else:
            return


def is_zeros(node: ast.AST) -> bool:
    """Whether a tree is an array of zeros."""
    return isinstance(node, ast.Call) and called(node) in ("zeros", "zeros_like")


def is_random(node: ast.AST | None) -> bool:
    """Whether a tree draws from NumPy's generator without a seed, or from the one that all share."""
    return node is not None and any(
        (called(call) == "default_rng" and not call.args and not call.keywords)
        or ".random." in text_of(call.func)
        for call in calls_in(node)
    )


def adds_at(node: ast.AST | None) -> bool:
    """Whether a tree calls ``np.add.at``."""
    return node is not None and any(text_of(call.func).endswith("add.at") for call in calls_in(node))


def types(node: ast.AST) -> set[str]:
    """Return the types that a tree names, or converts to."""
    named = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    texts = {
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }
    return named | texts | functions(node)


def has_size(node: ast.AST) -> bool:
    """Whether a tree holds the length of an axis, or the size of an array."""
    parts = list(ast.walk(node))
    lengths = (part.value for part in parts if isinstance(part, ast.Subscript))
    return (
        "len" in functions(node)
        or any(isinstance(part, ast.Attribute) and part.attr == "size" for part in parts)
        or any(isinstance(shape, ast.Attribute) and shape.attr == "shape" for shape in lengths)
    )


def names_in(node: ast.AST) -> set[str]:
    """Return the names in a tree."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def text_of(node: ast.AST | None) -> str:
    """Return a tree as text, none as ""."""
    return ast.unparse(node) if node is not None else ""
