"""Small edits of what is done to arrays: reductions, comparisons, calls, indices."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from handgrad.checking.repair.places import Place, Proposal, dimensions, is_float
from handgrad.checking.repair.source import Change, Edit
from handgrad.checking.repair.templates import fill

MOST_ALIKE = 4  # sums that are changed together

_SPELT = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}

_KINDRED = (
    ("sin", "cos", "tan"), ("sinh", "cosh", "tanh"), ("exp", "log", "expm1", "log1p"), ("maximum", "minimum"),
    ("max", "min"), ("argmax", "argmin"), ("zeros_like", "ones_like"), ("zeros", "ones"), ("repeat", "tile"),
    ("sqrt", "square"), ("cumsum", "cumprod"), ("floor", "ceil", "round"), ("sum", "prod"), ("sign", "abs"),
    ("tril", "triu"), ("vstack", "hstack"), ("argsort", "sort"),
)  # fmt: skip


def reductions(place: Place) -> Iterator[Proposal]:
    """Add a sum or leave it out, sum over other axes, with or without keepdims, sum for mean."""
    node = place.node
    found = _parts(node)
    if found is not None:
        array, name, axis, keepdims = found
        rank = dimensions(place.of(array))
        if rank < 1:
            return
        yield array, 2
        for new_name in (name, {"sum": "mean", "mean": "sum", "max": "sum"}.get(name, "sum")):
            for new_axis in _axes(rank):
                for new_keep in (False, True):
                    same = (new_name == name) + (new_axis == axis) + (new_keep == keepdims)
                    if same < 3:
                        yield _reduction(array, new_name, new_axis, new_keep), 3 - same + 0.1 * new_keep
    elif place.dimensions > 0 and is_float(place.value):
        for new_axis in _axes(place.dimensions):
            for new_keep in (False, True):
                yield _reduction(node, "sum", new_axis, new_keep), 2.5 + 0.5 * new_keep


def reduced_alike(places: Sequence[Place]) -> Iterator[Change]:
    """Sum over other axes wherever something is summed in one way: what was got wrong once was written twice."""
    groups: dict[tuple[Any, ...], list[tuple[Place, ast.expr]]] = {}
    for place in places:
        found = _parts(place.node)
        rank = dimensions(place.of(found[0])) if found is not None else 0
        if found is not None and rank > 0:
            groups.setdefault((rank, *found[1:]), []).append((place, found[0]))
    for (rank, name, axis, keepdims), several in groups.items():
        inner = {id(node) for _, array in several for node in ast.walk(array)}
        if any(id(place.node) in inner for place, _ in several):
            continue
        for new_axis, new_keep in (
            product(_axes(rank), (False, True)) if 1 < len(several) <= MOST_ALIKE else ()
        ):
            same = (new_axis == axis) + (new_keep == keepdims)
            edits = (
                Edit(place.node, _reduction(array, name, new_axis, new_keep)) for place, array in several
            )
            if same < 2:
                yield Change(tuple(edits), 3 - same + 0.1 * new_keep + len(several))


def reshapes(place: Place) -> Iterator[Proposal]:
    """Keep the last axis of what is flattened to rows, or the first."""
    node = place.node
    if not (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
    ):
        return
    array = node.func.value
    if dimensions(place.of(array)) > 2 and place.dimensions == 2:
        for template in ("A.reshape(-1, A.shape[-1])", "A.reshape(A.shape[0], -1)"):
            yield fill(template, A=array), 2


def comparisons(place: Place) -> Iterator[Proposal]:
    """Compare otherwise; negate a condition."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        old = _SPELT.get(type(node.ops[0]), "")
        for operator in _SPELT.values():
            if operator != old:
                turned = (operator[0] != old[:1]) + (operator[1:] != old[1:])
                yield fill(f"A {operator} B", A=node.left, B=node.comparators[0]), 0.6 + 0.4 * turned
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        yield node.operand, 1
    elif isinstance(place.value, np.ndarray) and place.value.dtype == bool:
        yield fill("~A", A=node), 1
    elif isinstance(place.value, bool | np.bool_):
        yield fill("not A", A=node), 1
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body), 1.5


def calls(place: Place) -> Iterator[Proposal]:
    """Leave out a call or a keyword, exchange arguments, call a kindred function."""
    node = place.node
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    if isinstance(node.func, ast.Attribute) and dimensions(place.of(node.func.value)) >= 0:
        yield node.func.value, 1.5
    for argument in node.args:
        yield argument, 1.5
    for i, j in combinations(range(len(node.args)), 2):
        swapped = list(node.args)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        yield ast.Call(node.func, swapped, node.keywords), 1.5
    for k in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:k] + node.keywords[k + 1 :]), 1.5
    if len(node.args) == 1 and not node.keywords:
        yield from _pulled_out(node)
    if isinstance(node.func, ast.Attribute):
        for kin in _KINDRED:
            if node.func.attr in kin:
                for name in kin:
                    if name != node.func.attr:
                        function = ast.Attribute(node.func.value, name, ast.Load())
                        yield ast.Call(function, node.args, node.keywords), 1


def indices(place: Place) -> Iterator[Proposal]:
    """Move an index one further or back; move a slice's end, or leave it out."""
    node = place.node
    if not isinstance(node, ast.Subscript):
        return
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    yield node.value, 1.5
    for k, item in enumerate(items):
        for new in _moved(item, place):
            changed = [*items[:k], new, *items[k + 1 :]]
            index = ast.Tuple(changed, ast.Load()) if isinstance(node.slice, ast.Tuple) else new
            yield ast.Subscript(node.value, index, ast.Load()), 1.5
    for i, j in combinations(range(len(items)), 2):
        changed = list(items)
        changed[i], changed[j] = changed[j], changed[i]
        yield ast.Subscript(node.value, ast.Tuple(changed, ast.Load()), ast.Load()), 1.5


def copies(place: Place) -> Iterator[Proposal]:
    """Take a copy."""
    if isinstance(place.node, ast.Name | ast.Subscript) and place.dimensions > 0:
        yield fill("A.copy()", A=place.node), 2


def ranges(place: Place) -> Iterator[Proposal]:
    """Let a loop run the other way."""
    node = place.node
    parent = place.source.parents[id(node)][0]
    if isinstance(parent, ast.For) and parent.iter is node:
        yield fill("reversed(A)", A=node), 2
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reversed" and node.args:
            yield node.args[0], 1.5


def _parts(node: ast.AST) -> tuple[ast.expr, str, Any, bool] | None:
    """Return (array, function, axis, keepdims) of ``array.sum(...)`` or ``np.sum(array, ...)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if name not in ("sum", "mean", "max", "min", "var", "std", "cumsum"):
        return None
    is_module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy")
    arguments = list(node.args) if is_module else [node.func.value, *node.args]
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if not arguments or len(arguments) > 2 or given.keys() - {"axis", "keepdims"}:
        return None
    try:
        axis = ast.literal_eval(
            arguments[1] if len(arguments) == 2 else given.get("axis", ast.Constant(None))
        )
        keepdims = ast.literal_eval(given.get("keepdims", ast.Constant(False)))
    except ValueError:
        return None
    return arguments[0], name, axis, bool(keepdims)


def _reduction(array: ast.expr, name: str, axis: Any, keepdims: bool) -> ast.expr:
    inside = [] if axis is None else [f"axis={axis!r}"]
    inside += ["keepdims=True"] if keepdims else []
    return fill(f"A.{name}({', '.join(inside)})", A=array)


def _axes(rank: int) -> list[Any]:
    axes: list[Any] = [None, *range(rank)]
    if rank > 2:
        axes += [pair for size in range(2, rank) for pair in combinations(range(rank), size)]
    return axes


def _pulled_out(node: ast.Call) -> Iterator[Proposal]:
    """``f(1 - a)`` becomes ``1 - f(a)``, ``f(-a)`` becomes ``-f(a)``: what was done inside is done outside."""
    inner = node.args[0]
    if isinstance(inner, ast.BinOp):
        yield ast.BinOp(inner.left, inner.op, ast.Call(node.func, [inner.right], [])), 2
        yield ast.BinOp(ast.Call(node.func, [inner.left], []), inner.op, inner.right), 2
    elif isinstance(inner, ast.UnaryOp):
        yield ast.UnaryOp(inner.op, ast.Call(node.func, [inner.operand], [])), 2


def _moved(item: ast.expr, place: Place) -> Iterator[ast.expr]:
    if isinstance(item, ast.Slice):
        for lower in _bounds(item.lower):
            yield ast.Slice(lower, item.upper, item.step)
        for upper in _bounds(item.upper):
            yield ast.Slice(item.lower, upper, item.step)
        yield ast.Slice(item.lower, item.upper, None if item.step is not None else fill("-1"))
    elif isinstance(place.of(item), int | np.integer) and not isinstance(item, ast.Constant):
        yield fill("A + 1", A=item)
        yield fill("A - 1", A=item)


def _bounds(bound: ast.expr | None) -> list[ast.expr | None]:
    """Return where else a slice could end."""
    if bound is None:
        return [fill("1"), fill("-1")]
    return [None, fill("A + 1", A=bound), fill("A - 1", A=bound)]
