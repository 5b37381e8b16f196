"""Small edits of names: another one in scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.checking.repair.places import Place, Proposal, dimensions, is_float


def names(place: Place) -> Iterator[Proposal]:
    """Take another name in scope, one of the same shape first."""
    node = place.node
    if not isinstance(node, ast.Name) or dimensions(place.value) < 0:
        return
    for name, value in place.scope.items():
        if name != node.id and dimensions(value) >= 0:
            same = np.shape(value) == np.shape(place.value) and is_float(value) == is_float(place.value)
            yield ast.Name(name, ast.Load()), 1 if same else 1.6


def everywhere(place: Place) -> Iterator[Proposal]:
    """Exchange a name or attribute for another wherever it stands in an expression."""
    node = place.node
    if not isinstance(node, ast.BinOp) or not is_float(place.value):
        return
    parent = place.source.parents[id(node)][0]
    if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Mult):
        return
    inner = [
        n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and dimensions(place.of(n)) >= 0
    ]
    texts = [ast.unparse(n) for n in inner]
    for text in sorted({text for text in texts if texts.count(text) > 1}):
        value = place.of(inner[texts.index(text)])
        for other, cost in _others(place, value):
            if ast.unparse(other) != text:
                yield _exchanged(node, text, other), 1.5 + cost


def _others(place: Place, value: Any) -> Iterator[Proposal]:
    """Yield the names in scope whose values have the shape of a value."""
    for name, other in place.scope.items():
        if dimensions(other) >= 0 and np.shape(other) == np.shape(value):
            yield ast.Name(name, ast.Load()), 0.5


def _exchanged(node: Any, text: str, other: ast.expr) -> Any:
    """Return an expression with a name or attribute exchanged; parts without it are the same objects."""
    if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) == text:
        return other
    if isinstance(node, list):
        return [_exchanged(item, text, other) for item in node]
    if not isinstance(node, ast.expr | ast.keyword):
        return node
    fields = {name: _exchanged(value, text, other) for name, value in ast.iter_fields(node)}
    same = all(
        all(a is b for a, b in zip(value, fields[name], strict=True))
        if isinstance(value, list)
        else value is fields[name]
        for name, value in ast.iter_fields(node)
    )
    return node if same else type(node)(**fields)
