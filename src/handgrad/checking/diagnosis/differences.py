"""The smallest parts in which two trees of Python differ."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Pair = tuple[ast.AST | None, ast.AST | None]  # None where one of the two has nothing there


def differences(a: ast.AST, b: ast.AST) -> Iterator[Pair]:
    """Yield the smallest parts in which two trees differ."""
    if ast.dump(a) == ast.dump(b):
        return
    if type(a) is not type(b):
        yield a, b
        return
    if isinstance(a, ast.expr) and not isinstance(a, ast.Dict | ast.Tuple | ast.Call | ast.BinOp):
        inner = list(_fields(a, b))
        yield from inner or [(a, b)]
        return
    if isinstance(a, ast.BinOp) and isinstance(b, ast.BinOp):
        if type(a.op) is not type(b.op):
            yield a, b
            return
        left, right = list(differences(a.left, b.left)), list(differences(a.right, b.right))
        whole = (
            left
            and right
            and (len(left) + len(right) > 6 or (a.left, b.left) in left or (a.right, b.right) in right)
        )
        yield from ([(a, b)] if whole else left + right)
        return
    if isinstance(a, ast.Call) and isinstance(b, ast.Call):
        same_function = ast.dump(a.func) == ast.dump(b.func)
        if not same_function or len(a.args) != len(b.args) or len(a.keywords) != len(b.keywords):
            inner = (
                list(differences(a.func, b.func))
                if [ast.dump(x) for x in a.args] == [ast.dump(x) for x in b.args]
                and len(a.keywords) == len(b.keywords)
                else []
            )
            yield from inner if inner and not isinstance(a.func, ast.Attribute) else [(a, b)]
            return
    yield from _fields(a, b)


def _fields(a: ast.AST, b: ast.AST) -> Iterator[Pair]:
    for name in a._fields:
        one, other = getattr(a, name, None), getattr(b, name, None)
        if isinstance(one, list) and isinstance(other, list):
            yield from _lists(one, other)
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            if isinstance(one, ast.operator | ast.unaryop | ast.cmpop | ast.boolop):
                if type(one) is not type(other):
                    yield a, b
            else:
                yield from differences(one, other)
        elif one != other:
            yield a, b


def _lists(a: list[ast.AST], b: list[ast.AST]) -> Iterator[Pair]:
    a, b = ([x for x in part if x is not None] for part in (a, b))  # {**values} has a key that is None
    if len(a) == len(b):
        for one, other in zip(a, b, strict=True):
            yield from differences(one, other)
        return
    seen = {ast.dump(x) for x in a}, {ast.dump(x) for x in b}
    gone = [x for x in a if ast.dump(x) not in seen[1]]
    came = [x for x in b if ast.dump(x) not in seen[0]]
    yield from ((x, None) for x in gone)
    yield from ((None, x) for x in came)
