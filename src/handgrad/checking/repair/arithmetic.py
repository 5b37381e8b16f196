"""Small edits of arithmetic: signs, operators, products, numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce
from itertools import combinations

import numpy as np

from handgrad.checking.repair.places import Place, Proposal, dimensions, is_float, sizes
from handgrad.checking.repair.templates import fill


def signs(place: Place) -> Iterator[Proposal]:
    """Flip a sign; ``1 - a`` where ``a`` stands."""
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand, 1
    elif is_float(place.value) and not isinstance(node, ast.Constant):
        yield fill("-A", A=node), 1.7 if isinstance(node, ast.BinOp) else 1.2
        if isinstance(node, ast.Name | ast.Call):
            yield fill("1 - A", A=node), 2


def operators(place: Place) -> Iterator[Proposal]:
    """Take another operator, the operands the other way round, or one of them alone."""
    node = place.node
    if not isinstance(node, ast.BinOp):
        return
    left, right = node.left, node.right
    others: dict[type[ast.operator], tuple[str, ...]] = {
        ast.Add: ("A - B",), ast.Sub: ("A + B", "B - A"), ast.Mult: ("A / B", "A + B"), ast.Div: ("A * B", "B / A"),
        ast.BitAnd: ("A | B",), ast.BitOr: ("A & B",), ast.Pow: ("A * B", "B ** A"),
        ast.FloorDiv: ("A % B",), ast.Mod: ("A // B",),
    }  # fmt: skip
    for template in others.get(type(node.op), ()):
        yield fill(template, A=left, B=right), 1.3 if "/" in template or isinstance(node.op, ast.Pow) else 1
    if isinstance(node.op, ast.MatMult):
        return
    yield left, 1.5
    alone = {ast.Sub: "-B", ast.Div: "1 / B"}.get(type(node.op), "B")
    yield fill(alone, B=right), 1.5 + 0.5 * (alone != "B")


def brackets(place: Place) -> Iterator[Proposal]:
    """Set the brackets elsewhere: ``1 - a ** 2`` for ``(1 - a) ** 2``."""
    node = place.node
    if not isinstance(node, ast.BinOp):
        return
    left, right = node.left, node.right
    if isinstance(left, ast.BinOp) and not _is_same_either_way(left.op, node.op):
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, node.op, right)), 1.2
    if isinstance(right, ast.BinOp) and not _is_same_either_way(node.op, right.op):
        yield ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right), 1.2


def _is_same_either_way(first: ast.operator, second: ast.operator) -> bool:
    """Whether ``(a · b) · c`` is ``a · (b · c)``."""
    return type(first) is type(second) and isinstance(first, ast.Add | ast.Mult | ast.MatMult)


def fewer(place: Place) -> Iterator[Proposal]:
    """Leave out two factors of a product, or two terms of a sum."""
    node = place.node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Add):
        return
    parent = place.source.parents[id(node)][0]
    if isinstance(parent, ast.BinOp) and type(parent.op) is type(node.op):
        return
    parts = _chain(node, type(node.op))
    for i, j in combinations(range(len(parts)), 2):
        rest = [part for k, part in enumerate(parts) if k not in (i, j)]
        if rest:
            yield reduce(lambda a, b: ast.BinOp(a, node.op, b), rest), 2


def products(place: Place) -> Iterator[Proposal]:
    """Take another product of the same two factors: ``@``, ``*``, ``np.outer``, with transposes."""
    factors = _factors(place.node)
    if factors is None:
        return
    left, right = factors
    a, b = dimensions(place.of(left)), dimensions(place.of(right))
    if a < 1 or b < 1:
        return
    templates = ["A * B", "A @ B", "B @ A"]
    if a == 2:
        templates += ["A.T @ B", "B @ A.T", "A.T * B"]
    if b == 2:
        templates += ["A @ B.T", "B.T @ A", "A * B.T"]
    if a == b == 2:
        templates += ["A.T @ B.T", "B.T @ A.T"]
    if max(a, b) > 2:
        templates += [
            "A @ np.swapaxes(B, -1, -2)",
            "np.swapaxes(A, -1, -2) @ B",
            "B @ np.swapaxes(A, -1, -2)",
        ]
        templates += ["np.swapaxes(B, -1, -2) @ A"]
    if a == b == 1:
        templates = ["np.outer(A, B)", "np.outer(B, A)", *templates]
    if a == 2 and b == 1:
        templates += ["A * B[:, None]"]
    if a == 1 and b == 2:
        templates += ["A[:, None] * B"]
    bare = {"A": _bare(left), "B": _bare(right)}
    for template in templates:
        cost = 1.5 + 0.4 * template.count(".T") + 0.5 * ("swapaxes" in template)
        yield fill(template, A=left, B=right), cost
        if bare["A"] is not left or bare["B"] is not right:
            yield fill(template, **bare), cost


def transposes(place: Place) -> Iterator[Proposal]:
    """Transpose, or do not."""
    node = place.node
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value, 1
    elif place.dimensions == 2:
        parent = place.source.parents[id(node)][0]
        yield (
            fill("A.T", A=node),
            1 if isinstance(parent, ast.BinOp) and isinstance(node, ast.Name | ast.Call) else 2,
        )
    elif place.dimensions > 2:
        yield fill("np.swapaxes(A, -1, -2)", A=node), 2.5


def numbers(place: Place) -> Iterator[Proposal]:
    """Take another number, or a value in scope, where a number stands."""
    node = place.node
    if (
        not isinstance(node, ast.Constant)
        or isinstance(node.value, bool)
        or not isinstance(node.value, int | float)
    ):
        return
    n = node.value
    parent = place.source.parents[id(node)][0]
    elsewhere = [other.value for other in ast.walk(place.source.tree) if isinstance(other, ast.Constant)]
    found: dict[float, float] = {}  # with the cost: what the file says elsewhere is nearest
    for other in elsewhere:
        if isinstance(other, int | float) and not isinstance(other, bool):
            found.setdefault(other, 1.0)
    for other in (n + 1, n - 1, 2 * n, n / 2, n * n, 0, 1, 2, 0.5):
        found.setdefault(other, 1.3)
    found.pop(n, None)
    for other, cost in found.items():
        tidy = int(other) if isinstance(n, int) and other == int(other) else other
        new = ast.Constant(tidy) if tidy >= 0 else fill("-A", A=ast.Constant(-tidy))
        yield new, 1.6 if tidy in (0, 1) and not isinstance(parent, ast.Compare) else cost
    if n not in (0, 1):
        for template in ("2 * A", "A / 2", "3 * A", "A / 3", "4 * A", "A / 4"):
            yield fill(template, A=node), 1.5 if "2" in template else 1.8
    for name, value in place.scope.items():
        if dimensions(value) >= 0:
            yield ast.Name(name, ast.Load()), 1 if is_float(value) else 1.2


def factors(place: Place) -> Iterator[Proposal]:
    """Multiply or divide by 2, or by a size."""
    if not is_float(place.value) or isinstance(place.node, ast.Constant):
        return
    more = 0.0 if isinstance(place.node, ast.Name | ast.Call) else 0.1
    for template in ("2 * A", "A / 2", "3 * A", "A / 3", "4 * A", "A / 4", "A ** 2"):
        yield fill(template, A=place.node), (2 if "2" in template else 3) + more
    for k, size in enumerate(sizes(place.scope)):
        for template in ("A * N", "A / N"):
            yield fill(template, A=place.node, N=size), 2.2 + more + 0.1 * k


def counts(place: Place) -> Iterator[Proposal]:
    """Take another number of rows, columns or entries; one more or one less."""
    node, value = place.node, place.value
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or isinstance(node, ast.Constant):
        return
    for template in ("A - 1", "A + 1"):
        yield fill(template, A=node), 2
    for k, size in enumerate(sizes(place.scope)):
        yield size, 1.5 + 0.05 * k


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the factors of a product, whichever way it is written."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if len(node.args) == 2 and node.func.attr in ("dot", "matmul", "outer", "multiply", "inner"):
        return node.args[0], node.args[1]
    return (node.func.value, node.args[0]) if len(node.args) == 1 and node.func.attr == "dot" else None


def _chain(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """Return the operands of a chain ``a * b * c``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [*_chain(node.left, operator), *_chain(node.right, operator)]
    return [node]


def _bare(node: ast.expr) -> ast.expr:
    """Return what is transposed."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "T" else node
