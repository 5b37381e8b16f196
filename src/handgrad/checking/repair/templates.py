"""Writing expressions from a template: ``fill("A.T @ B", A=left, B=right)``."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any


def fill(template: str, **parts: ast.expr | str | float) -> ast.expr:
    """Return a template's expression with its capital names replaced by nodes, names or numbers.

    Examples
    --------
    >>> ast.unparse(fill("A.T @ B", A=ast.parse("x + 1", mode="eval").body, B="d"))
    '(x + 1).T @ d'
    """
    filled: ast.expr = _filled(_parsed(template), parts)
    return filled


@lru_cache(maxsize=1000)
def _parsed(template: str) -> ast.expr:
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
