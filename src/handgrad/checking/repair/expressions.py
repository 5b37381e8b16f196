"""The expressions that a backward evaluates, each with its value and the names in scope; and new ones from templates."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from handgrad.checking.repair.instrumentation import Observed
from handgrad.checking.repair.module_source import ModuleSource, called

UPSTREAM_NAMES = frozenset({"g", "dout", "dy", "upstream", "grad_output"})


@dataclass(frozen=True)
class Expression:
    """An expression, its first value, and the local names in scope there."""

    node: ast.expr
    value: Any
    scope: dict[str, Any]
    source: ModuleSource
    observed: Observed

    def of(self, node: ast.AST) -> Any:
        """Return the value of another expression, or None."""
        return self.observed.values.get(id(node))

    @property
    def parent(self) -> ast.AST:
        """The node that holds this one."""
        return self.source.parents[id(self.node)][0]

    @property
    def dimensions(self) -> int:
        """The number of axes of the value, 0 for a number, -1 for what is neither."""
        return dimensions(self.value)

    @cached_property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        calls = (node for node in ast.walk(self.node) if isinstance(node, ast.Call))
        return any(".random." in ast.unparse(call.func) for call in calls)

    @cached_property
    def upstream(self) -> frozenset[str]:
        """What the upstream gradient is called."""
        first, *inputs = self.source.parameters(self.source.backward) or [""]
        return (UPSTREAM_NAMES - {*inputs}) | {first}


def is_gradient(place: Expression, node: ast.AST) -> bool:
    """Whether an expression has a gradient in it, by what its names are called."""
    return any(name in place.upstream or name.startswith(("d", "grad")) for name in names_in(node))


def expressions(source: ModuleSource, observed: Observed) -> Iterator[Expression]:
    """Yield the expressions that backward evaluates."""
    for name in source.reachable(source.backward):
        for node in ast.walk(source.units[name]):
            if isinstance(node, ast.expr) and id(node) in observed.values:
                scope = observed.scopes.get(id(source.statement_of(node)), {})
                yield Expression(node, observed.values[id(node)], scope, source, observed)


def dimensions(value: Any) -> int:
    """Return the number of axes of an array, 0 for a number, -1 for anything else."""
    if isinstance(value, bool | np.bool_):
        return 0
    if isinstance(value, np.ndarray | np.number | int | float):
        return np.ndim(value)
    return -1


def is_float(value: Any) -> bool:
    """Whether a value is a floating-point array or number."""
    return isinstance(value, float | np.floating) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )


def names_in(node: ast.AST) -> set[str]:
    """Return the names in a tree."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def same(one: Any, other: Any) -> bool:
    """Whether two trees are the same code."""
    return isinstance(one, ast.AST) and isinstance(other, ast.AST) and ast.dump(one) == ast.dump(other)


def sizes(scope: dict[str, Any]) -> list[ast.expr]:
    """Return the lengths of the arrays in scope as expressions, one for each number."""
    found: dict[int, ast.expr] = {}
    arrays = {name: value for name, value in scope.items() if isinstance(value, np.ndarray)}
    for name, value in arrays.items():
        if value.ndim:
            found.setdefault(len(value), fill("len(A)", A=name))
    for name, value in arrays.items():
        for axis in range(1, value.ndim):
            found.setdefault(value.shape[axis], fill("A.shape[K]", A=name, K=axis))
    for name, value in arrays.items():
        if value.ndim > 1:
            found.setdefault(value.size, fill("A.size", A=name))
    return [expression for size, expression in found.items() if size > 1]


def is_size(node: ast.AST) -> bool:
    """Whether an expression is the length of an axis or the size of an array."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return called(node) == "len" or (isinstance(node, ast.Attribute) and node.attr == "size")


def fill(template: str, **parts: ast.expr | str | float) -> ast.expr:
    """Return a template's expression with its capital names replaced by nodes, names or numbers.

    Examples
    --------
    >>> ast.unparse(fill("A.T @ B", A=ast.parse("x + 1", mode="eval").body, B="d"))
    '(x + 1).T @ d'
    """
    filled: ast.expr = _filled(parsed(template), parts)
    return filled


@lru_cache(maxsize=1000)
def parsed(template: str) -> ast.expr:
    """Return a template as a tree."""
    return ast.parse(template, mode="eval").body


def _filled(node: Any, parts: dict[str, Any]) -> Any:
    """Return a copy without places in the text, which are of another text."""
    if isinstance(node, list):
        return [_filled(item, parts) for item in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Name) and node.id in parts:
        part = parts[node.id]
        if isinstance(part, str):
            return ast.Name(part, ast.Load())
        return part if isinstance(part, ast.expr) else ast.Constant(part)
    return type(node)(*(_filled(getattr(node, field), parts) for field in node._fields))
