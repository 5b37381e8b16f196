"""Where a backward hands out each argument's gradient."""

from __future__ import annotations

import ast

from handgrad.checking.subject import Subject


def slots(node: ast.Return, subject: Subject) -> dict[str, ast.expr]:
    """Return the expression of each argument's gradient, where they are written out one by one."""
    value = node.value
    if isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        return {key: item for key, item in zip(keys, value.values, strict=True) if isinstance(key, str)}
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg is not None}
    if isinstance(value, ast.Tuple | ast.List):
        names = subject.inputs if len(value.elts) == len(subject.inputs) else subject.differentiable
        return dict(zip(names, value.elts, strict=False))
    return {}
