"""The small edits of a backward's statements: left out, taken later, accumulated for overwritten, results exchanged."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from itertools import combinations

from handgrad.checking.interfaces.script_updates import moved_by, names_in
from handgrad.checking.repair.edit_table import LIKE_IT
from handgrad.checking.repair.expressions import Observed, fill, is_float, sizes
from handgrad.checking.repair.module_source import Change, Edit, ModuleSource, called

ADDS, TORCH_ADDS = "np.add.at(A, I, V)", "A.index_put_((I,), V, accumulate=True)"


def statement_changes(source: ModuleSource, observed: Observed, nodes: Iterable[ast.AST]) -> Iterator[Change]:
    """Yield every small edit of the statements that backward runs."""
    for node in nodes:
        if isinstance(node, ast.stmt) and id(node) in observed.scopes:
            parameters = source.parameters(source.enclosing(node, ast.FunctionDef))
            if _is_step(node) and moved_by(node) not in parameters:  # without it, nothing would be trained
                yield from _taken_later(node, source)
            else:
                yield from _left_out(node, parameters)
            yield from _written_otherwise(node, TORCH_ADDS if source.is_torch else ADDS)
            yield from _results(node)
            yield from _other_end(node, source)
            yield from _moved(node, source)
            yield from _averaged_after(node, observed)
            yield from _indices(node, source, observed)


def _is_step(node: ast.stmt) -> bool:
    """Whether a statement is a parameter's step: ``W -= lr * dW``."""
    adds = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    return bool(moved_by(node)) and not adds


def _taken_later(node: ast.stmt, source: ModuleSource) -> Iterator[Change]:
    """Yield a parameter's step after all that reads the parameter, of the statements that the step is among."""
    parameter = moved_by(node)
    body = _body_of(node, source)
    reading = [each for each in body[body.index(node) + 1 :] if parameter in names_in([each], ast.Load)]
    if reading and not isinstance(reading[-1], ast.Return):
        edits = Edit(node, ()), Edit(reading[-1], (reading[-1], node))
        words = f"`{ast.unparse(node)}` is put after it"
        yield Change(edits, 1.0, "stale-or-mutated-state", description=words)


def _moved(node: ast.stmt, source: ModuleSource) -> Iterator[Change]:
    """Yield what begins anew in each pass of a loop put before it, and what ends one put behind it, or into it."""
    moved, body = node, _body_of(node, source)
    text = ast.unparse(node).partition("\n")[0]
    if not isinstance(node, ast.Return | ast.AugAssign | ast.Assign | ast.Expr):
        return
    if (place := body.index(node)) and isinstance(loop := body[place - 1], ast.For | ast.While):
        edits = Edit(node, ()), Edit(loop.body[-1], (loop.body[-1], node))
        yield Change(edits, 1.4, "overwritten-not-accumulated", description=f"`{text}` is put into the loop")
    is_last = True
    while isinstance(holder := source.parents[id(moved)][0], ast.For | ast.While | ast.If | ast.With):
        is_last &= _body_of(moved, source)[-1] is moved
        if isinstance(holder, ast.For | ast.While) and _begins(node):
            edits = Edit(node, ()), Edit(holder, (node, holder))
            yield Change(
                edits, 1.2, "overwritten-not-accumulated", description=f"`{text}` is put before the loop"
            )
        elif isinstance(holder, ast.For | ast.While) and is_last:
            edits = Edit(node, ()), Edit(holder, (holder, node))
            code = "batch-mean-vs-sum" if _scales(node) else "missing-term"
            yield Change(edits, 1.2, code, description=f"`{text}` is put behind the loop")
        moved = holder


def _body_of(node: ast.stmt, source: ModuleSource) -> list[ast.stmt]:
    """Return the statements that one is among."""
    holder, field = source.parents[id(node)]
    body: list[ast.stmt] = getattr(holder, field)
    return body


def _begins(node: ast.stmt) -> bool:
    """Whether a statement makes room for sums: zeros, or 0."""
    value = node.value if isinstance(node, ast.Assign) else None
    return called(value or node) in ("zeros", "zeros_like") or getattr(value, "value", None) == 0


def _scales(node: ast.stmt) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult | ast.Div)


def _indices(node: ast.stmt, source: ModuleSource, observed: Observed) -> Iterator[Change]:
    """Yield an entry or a slice taken where forward, or the same function, takes one: ``t * stride`` for ``t``."""
    if hasattr(node, "body"):
        return
    known = {*observed.scopes[id(node)], *source.globals, *dir(builtins)}
    function = source.enclosing(node, ast.FunctionDef)
    trees = [function, *map(source.definitions.__getitem__, source.forward)]
    nodes = (each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Subscript))
    others = {ast.unparse(each.slice): each.slice for each in nodes if names_in([each.slice]) <= known}
    for own in ast.walk(node):
        parts = _parts_of(own.slice) if isinstance(own, ast.Subscript) else []
        for other in others.values() if any(isinstance(part, ast.Slice) for part in parts) else ():
            theirs = _parts_of(other)
            off = [
                k for k, (a, b) in enumerate(zip(parts, theirs, strict=False)) if ast.dump(a) != ast.dump(b)
            ]
            fits = len(theirs) == len(parts) and all(isinstance(theirs[k], type(parts[k])) for k in off)
            if fits and off and not {*map(id, parts)} & {*map(id, ast.walk(other))}:
                edits = tuple(Edit(parts[k], theirs[k]) for k in off)
                yield Change(edits, 1.4 + 0.2 * len(off), "wrong-evaluation-point", "wrong-evaluation-point")


def _averaged_after(node: ast.stmt, observed: Observed) -> Iterator[Change]:
    """Yield an array divided by a size when the last of it is written: ``dlogits[range(n), y] -= 1; dlogits /= n``."""
    match node:
        case ast.AugAssign(ast.Subscript(ast.Name() | ast.Attribute() as array)) | ast.Assign(
            [ast.Subscript(ast.Name() | ast.Attribute() as array)]
        ):
            scope = observed.scopes[id(node)]
            target = ast.parse(f"{ast.unparse(array)} = 0").body[0].targets[0]  # type: ignore[attr-defined]
            for k, size in enumerate(sizes(scope) if is_float(scope.get(ast.unparse(array))) else ()):
                line = ast.AugAssign(target, ast.Div(), size)
                yield Change((Edit(node, (node, line)),), 2.0 + LIKE_IT * k, "batch-mean-vs-sum")


def _other_end(node: ast.stmt, source: ModuleSource) -> Iterator[Change]:
    """Yield the gradient of both ends of a difference, of which one is left out: of ``s[k]`` in ``s[j] - s[k]``."""
    match node:
        case ast.AugAssign(ast.Subscript(array, index), ast.Add() | ast.Sub() as operator, value):
            sign = ast.Sub() if isinstance(operator, ast.Add) else ast.Add()
            for one, other in _ends_of_differences(source):
                parts = [other if ast.dump(part) == ast.dump(one) else part for part in _parts_of(index)]
                if other in parts:
                    place = ast.Tuple(parts, ast.Load()) if isinstance(index, ast.Tuple) else parts[0]
                    new = ast.AugAssign(ast.Subscript(array, place, ast.Store()), sign, value)
                    yield Change((Edit(node, (new, node)),), 1.8, "missing-term", "extra-term")


def _ends_of_differences(source: ModuleSource) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the indices that differ in the differences of two entries that forward takes, both ways round."""
    for definition in map(source.definitions.__getitem__, source.forward):
        for node in ast.walk(definition):
            match node:
                case ast.BinOp(ast.Subscript(a, i), ast.Sub(), ast.Subscript(b, j)) if ast.dump(
                    a
                ) == ast.dump(b):
                    for one, other in zip(_parts_of(i), _parts_of(j), strict=False):
                        if ast.dump(one) != ast.dump(other):
                            yield from ((one, other), (other, one))


def _parts_of(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _left_out(node: ast.stmt, parameters: list[str]) -> Iterator[Change]:
    if isinstance(node, ast.Return | ast.FunctionDef | ast.Import | ast.ImportFrom):
        return
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    inside = isinstance(node, ast.AugAssign) or isinstance(target, ast.Subscript)
    while isinstance(target, ast.Subscript):
        target = target.value
    writes_input = inside and isinstance(target, ast.Name) and target.id in parameters
    cost = 1.4 if writes_input else 1.5 if isinstance(node, ast.AugAssign | ast.Expr) else 2.5
    added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and not writes_input
    yield Change((Edit(node, ()),), cost, "extra-term" if added else "stale-or-mutated-state", "missing-term")


def _written_otherwise(node: ast.stmt, adds: str) -> Iterator[Change]:
    """Yield ``a += b`` for ``a = b``, ``np.add.at(a, i, b)`` for ``a[i] += b``, and the other way round."""

    def instead(new: ast.stmt, cost: float, undoes: str, makes: str = "") -> Change:
        return Change((Edit(node, (new,)),), cost, undoes, makes or undoes)

    not_added = "overwritten-not-accumulated"
    match node:
        case ast.AugAssign(target, operator, value):
            for other in (ast.Add(), ast.Sub(), ast.Mult(), ast.Div()):
                if not isinstance(other, type(operator)):
                    signs = {type(other), type(operator)} == {ast.Add, ast.Sub}
                    new = ast.AugAssign(target, other, value)
                    yield instead(new, 1, "wrong-sign" if signs else "wrong-local-derivative")
            yield instead(ast.Assign([target], value), 1, "extra-term", not_added)
            read = ast.parse(ast.unparse(target), mode="eval").body
            apart = ast.Assign([target], ast.BinOp(read, operator, value))
            yield instead(apart, 2, "stale-or-mutated-state")
        case ast.Assign([ast.Name() | ast.Subscript() | ast.Attribute() as target], value):
            yield instead(ast.AugAssign(target, ast.Add(), value), 1, not_added, "extra-term")
        case ast.Expr(ast.Call(function, [array, index, value])) if ast.unparse(function).endswith("add.at"):
            entries = ast.Subscript(array, index, ast.Store())
            yield instead(ast.AugAssign(entries, ast.Add(), value), 1, not_added)
            yield instead(ast.Assign([entries], value), 1, not_added)
    match node:
        case ast.AugAssign(ast.Subscript(a, i), ast.Add(), v) | ast.Assign([ast.Subscript(a, i)], v):
            yield instead(ast.Expr(fill(adds, A=a, I=i, V=v)), 2, not_added)


def _results(node: ast.stmt) -> Iterator[Change]:
    """Yield two entries exchanged: of a dictionary, of a tuple, of the names assigned to."""
    indices = {id(inner.slice) for inner in ast.walk(node) if isinstance(inner, ast.Subscript)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and inner is not node:
            return
        items: list[ast.expr] = []
        match inner:
            case ast.Dict():
                items = inner.values
            case ast.Tuple() | ast.List() if id(inner) not in indices:
                items = inner.elts
            case ast.Call():
                items = [keyword.value for keyword in inner.keywords]
        for a, b in combinations(items, 2):
            yield Change((Edit(a, b), Edit(b, a)), 1.3, "swapped-gradients", "swapped-gradients")
