"""The expressions that a backward evaluates, each with its value and the names in scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.repair.source import Source
from handgrad.checking.repair.templates import fill
from handgrad.checking.repair.trace import Facts

Proposal = tuple[ast.expr, float]  # what could stand at a place instead, and its cost


@dataclass(frozen=True)
class Place:
    """An expression, what it was worth at first, and the local names in scope there."""

    node: ast.expr
    value: Any
    scope: dict[str, Any]
    source: Source
    facts: Facts

    def of(self, node: ast.AST) -> Any:
        """Return what another expression was worth, or None."""
        return self.facts.values.get(id(node))

    @property
    def dimensions(self) -> int:
        """The number of axes of the value, 0 for a number, -1 for what is neither."""
        return dimensions(self.value)


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


def places(source: Source, facts: Facts) -> Iterator[Place]:
    """Yield the expressions that backward evaluates."""
    for name in source.reachable(source.backward):
        unit = source.units[name]
        for node in ast.walk(unit):
            if isinstance(node, ast.expr) and id(node) in facts.values:
                scope = facts.scopes.get(id(source.statement_of(node)), {})
                yield Place(node, facts.values[id(node)], scope, source, facts)


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
