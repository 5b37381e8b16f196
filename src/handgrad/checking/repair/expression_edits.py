"""Small edits of one expression that depend on more than its form: on values, on names in scope, on the rest of the file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations, product
from typing import Any

import numpy as np

from handgrad.checking.repair.edit_table import (
    AVERAGED,
    AXIS,
    ELEMENTWISE,
    EXTRA,
    FACTOR,
    LACKS_FACTOR,
    LACKS_TERM,
    LOCAL,
    NOT_SUMMED,
    POINT,
    SHAPE,
    SIZE,
    STATE,
    TRANSPOSED,
    UPSTREAM,
    Edited,
    everywhere,
    in_context,
    is_of_a_term,
    outline,
    table_edits,
)
from handgrad.checking.repair.expressions import (
    Expression,
    dimensions,
    fill,
    is_float,
    is_gradient,
    is_size,
    sizes,
)
from handgrad.checking.repair.module_source import Change, Edit, called

MOST_ALIKE = 4  # reductions that are changed together
KINDRED = (
    ("sin", "cos", "tan"), ("sinh", "cosh", "tanh"), ("exp", "log", "expm1", "log1p"), ("maximum", "minimum"),
    ("max", "min"), ("argmax", "argmin"), ("zeros_like", "ones_like"), ("zeros", "ones"), ("repeat", "tile"),
    ("sqrt", "square"), ("cumsum", "cumprod"), ("floor", "ceil", "round"), ("sum", "prod"), ("sign", "abs"),
    ("tril", "triu"), ("vstack", "hstack"), ("argsort", "sort"),
)  # fmt: skip
"""Functions that are taken for one another."""
CHAINS = ((ast.Mult, ast.Div), (ast.Add, ast.Sub))
REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "cumsum")


def expression_changes(places: Sequence[Expression]) -> Iterator[Change]:
    """Yield every small edit of one expression, or the same one of several alike."""
    yield from reduced_alike(places)
    for place in places:
        for family in FAMILIES:
            for edited in family(place):
                new, cost, undoes, makes, alike = in_context(place, edited)
                yield Change((Edit(place.node, new),), cost, undoes, makes, alike)


def _either(new: ast.expr, cost: float, code: str) -> Edited:
    """Return an edit of which nobody can say which side is right by its form."""
    return Edited(new, cost, code, code)


def fewer(place: Expression) -> Iterator[Edited]:
    """Leave out two factors of a product, or two terms of a sum, or all but one."""
    node = place.node
    kinds = next(
        (kinds for kinds in CHAINS if isinstance(node, ast.BinOp) and isinstance(node.op, kinds)), None
    )
    if kinds is None or (isinstance(place.parent, ast.BinOp) and isinstance(place.parent.op, kinds)):
        return
    parts = _chain(node, kinds)
    makes = LACKS_FACTOR if ast.Mult in kinds else LACKS_TERM
    for count in {1, len(parts) - 2} if len(parts) > 2 else ():
        for rest in combinations(parts, count):
            if isinstance(rest[0][0], ast.Mult | ast.Add):
                new = reduce(lambda a, part: ast.BinOp(a, *part), rest[1:], rest[0][1])
                gone = [outline(part) for _, part in parts if all(part is not kept for _, kept in rest)]
                yield Edited(new, 2, EXTRA, makes, f"without {gone}")


def products(place: Expression) -> Iterator[Edited]:
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
            f"{first} @ {second}"
            for first, second in (
                ("A", "np.swapaxes(B, -1, -2)"), ("np.swapaxes(A, -1, -2)", "B"),
                ("B", "np.swapaxes(A, -1, -2)"), ("np.swapaxes(B, -1, -2)", "A"),
            )
        ]  # fmt: skip
    if a == b == 1:
        templates = ["np.outer(A, B)", "np.outer(B, A)", *templates]
    if a == 2 and b == 1:
        templates += ["A * B[:, None]"]
    if a == 1 and b == 2:
        templates += ["A[:, None] * B"]
    bare = {"A": _bare(left), "B": _bare(right)}
    for template in templates:
        cost = 1.5 + 0.4 * template.count(".T") + 0.5 * ("swapaxes" in template)
        for parts in ({"A": left, "B": right}, bare):
            new = fill(template, **parts)
            code = AXIS if "None" in template else TRANSPOSED
            yield _either(new, cost, code if _joins(new) == _joins(place.node) else ELEMENTWISE)
            if parts == bare or (bare["A"] is left and bare["B"] is right):
                break


def _joins(node: ast.AST) -> str:
    """Return how a product joins its factors: entry by entry, as matrices, or each with each."""
    if isinstance(node, ast.BinOp):
        return "matmul" if isinstance(node.op, ast.MatMult) else "multiply"
    return {"dot": "matmul"}.get(called(node), called(node))


def numbers(place: Expression) -> Iterator[Edited]:
    """Take another number, or a value in scope, where a number stands."""
    node = place.node
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool | str) or node.value is None:
        return
    n = node.value
    if not isinstance(n, int | float):
        return
    found: dict[float, float] = {}  # with the cost: what the file has elsewhere is nearest
    for other in ast.walk(place.source.tree):
        value = other.value if isinstance(other, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(value, 1.0)
    for value in (n + 1, n - 1, 2 * n, n / 2, n * n, 0, 1, 2, 0.5):
        found.setdefault(value, 1.3)
    found.pop(n, None)
    for value, cost in found.items():
        tidy = int(value) if isinstance(n, int) and value == int(value) else value
        new = ast.Constant(tidy) if tidy >= 0 else fill("-A", A=ast.Constant(-tidy))
        yield _either(
            new, 1.6 if tidy in (0, 1) and not isinstance(place.parent, ast.Compare) else cost, LOCAL
        )
    if n not in (0, 1):
        for template in ("2 * A", "A / 2", "3 * A", "A / 3", "4 * A", "A / 4"):
            yield _either(fill(template, A=node), 1.5 if "2" in template else 1.8, FACTOR)
    for name, value in place.scope.items():
        if dimensions(value) >= 0:
            yield _either(ast.Name(name, ast.Load()), 1 if is_float(value) else 1.2, LOCAL)


def counts(place: Expression) -> Iterator[Edited]:
    """Take another number of rows, columns or entries; one more or one less."""
    node, value = place.node, place.value
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or isinstance(node, ast.Constant):
        return
    for template in ("A - 1", "A + 1"):
        yield _either(fill(template, A=node), 2, LOCAL)
    for k, size in enumerate(sizes(place.scope)):
        yield _either(size, 1.5 + 0.05 * k, SIZE if is_size(node) else LOCAL)


def names(place: Expression) -> Iterator[Edited]:
    """Take another name in scope, one of the same shape first; here, or wherever it stands in the expression."""
    node = place.node
    if isinstance(node, ast.Name) and place.dimensions >= 0:
        for name, value in place.scope.items():
            if name != node.id and dimensions(value) >= 0:
                alike = np.shape(value) == np.shape(place.value) and is_float(value) == is_float(place.value)
                yield _either(ast.Name(name, ast.Load()), 1 if alike else 1.6, POINT)
    if not isinstance(node, ast.BinOp) or not is_float(place.value):
        return
    if isinstance(place.parent, ast.BinOp) and not isinstance(place.parent.op, ast.Mult):
        return
    inner = [
        n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and dimensions(place.of(n)) >= 0
    ]
    texts = [ast.unparse(n) for n in inner]
    for text in sorted({text for text in texts if texts.count(text) > 1}):
        value = place.of(inner[texts.index(text)])
        for name, other in place.scope.items():
            if name != text and dimensions(other) >= 0 and np.shape(other) == np.shape(value):
                yield _either(everywhere(node, {text: ast.Name(name, ast.Load())}), 2, POINT)
    applied = [n for n in ast.walk(node) if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords]
    for call in {
        ast.unparse(n): n for n in applied if [ast.unparse(m) for m in applied].count(ast.unparse(n)) > 1
    }.values():
        yield _either(everywhere(node, {ast.unparse(call): call.args[0]}), 2, POINT)


def wrapped(place: Expression) -> Iterator[Edited]:
    """Apply a function that forward or backward applies elsewhere: the derivative was taken at another value."""
    if not isinstance(place.node, ast.Name) or not is_float(place.value) or place.node.id in place.upstream:
        return
    if isinstance(place.parent, ast.Call):
        return
    for function in place.source.functions_of_one:
        yield Edited(ast.Call(function, [place.node], []), 1.8, POINT, EXTRA)


def reductions(place: Expression) -> Iterator[Edited]:
    """Add a sum or leave it out, sum over other axes, with or without keepdims, sum for mean."""
    node = place.node
    found = _parts(node)
    if found is not None:
        array, name, axis, keepdims = found
        rank = dimensions(place.of(array))
        if rank < 1:
            return
        yield Edited(array, 2, AVERAGED if name in ("sum", "mean") else EXTRA, NOT_SUMMED)
        for new_name in (name, {"sum": "mean", "mean": "sum", "max": "sum"}.get(name, "sum")):
            renamed = SIZE if {name, new_name} == {"sum", "mean"} else LOCAL
            for new_axis, new_keep in product(_axes(rank), (False, True)):
                alike = (new_name == name) + (new_axis == axis) + (new_keep == keepdims)
                if alike < 3:
                    new = _reduction(array, new_name, new_axis, new_keep)
                    shape = SHAPE if new_axis == axis and is_of_a_term(place) else AXIS
                    yield _either(new, 3 - alike + 0.1 * new_keep, renamed if new_name != name else shape)
    elif place.dimensions > 0 and is_float(place.value):
        for name, (new_axis, new_keep) in product(
            ("sum", "mean"), product(_axes(place.dimensions), (False, True))
        ):
            new = _reduction(node, name, new_axis, new_keep)
            yield Edited(new, 2.5 + 0.5 * new_keep + (name == "mean"), NOT_SUMMED, AVERAGED)


def reduced_alike(places: Sequence[Expression]) -> Iterator[Change]:
    """Sum over other axes wherever something is summed in one way: what was got wrong once was written twice."""
    groups: dict[tuple[Any, ...], list[tuple[Expression, ast.expr]]] = {}
    for place in places:
        found = _parts(place.node)
        rank = dimensions(place.of(found[0])) if found is not None else 0
        if found is not None and rank > 0:
            groups.setdefault((rank, *found[1:]), []).append((place, found[0]))
    for (rank, name, axis, keepdims), several in groups.items():
        inner = {id(node) for _, array in several for node in ast.walk(array)}
        if not 1 < len(several) <= MOST_ALIKE or any(id(place.node) in inner for place, _ in several):
            continue
        for new_axis, new_keep in product(_axes(rank), (False, True)):
            alike = (new_axis == axis) + (new_keep == keepdims)
            if alike < 2:
                edits = (
                    Edit(place.node, _reduction(array, name, new_axis, new_keep)) for place, array in several
                )
                yield Change(tuple(edits), 3 - alike + 0.1 * new_keep + len(several), AXIS, AXIS)


def reshapes(place: Expression) -> Iterator[Edited]:
    """Flatten to rows of the last axis, or of the first."""
    node = place.node
    if called(node) == "reshape" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        array = node.func.value
        if dimensions(place.of(array)) > 2 and place.dimensions == 2:
            for template in ("A.reshape(-1, A.shape[-1])", "A.reshape(A.shape[0], -1)"):
                yield _either(fill(template, A=array), 2, AXIS)


_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def comparisons(place: Expression) -> Iterator[Edited]:
    """Compare otherwise; negate a condition."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        old = _COMPARED.get(type(node.ops[0]), "")
        for operator in _COMPARED.values():
            if operator != old:
                turned = (operator[0] != old[:1]) + (operator[1:] != old[1:])
                new = fill(f"A {operator} B", A=node.left, B=node.comparators[0])
                yield _either(new, 0.6 + 0.4 * turned, LOCAL)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        yield _either(node.operand, 1, LOCAL)
    elif isinstance(place.value, np.ndarray) and place.value.dtype == bool:
        yield _either(fill("~A", A=node), 1, LOCAL)
    elif isinstance(place.value, bool | np.bool_):
        yield _either(fill("not A", A=node), 1, LOCAL)
    if isinstance(node, ast.IfExp):
        yield _either(ast.IfExp(node.test, node.orelse, node.body), 1.5, LOCAL)


def calls(place: Expression) -> Iterator[Edited]:
    """Leave out a call or a keyword, exchange arguments, call a kindred function, in place of an upstream of ones too."""
    node = place.node
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    method = isinstance(node.func, ast.Attribute) and dimensions(place.of(node.func.value)) >= 0
    operands = [*([node.func.value] if method else []), *node.args]  # type: ignore[attr-defined]
    for argument in operands if _parts(node) is None else ():
        gradient = is_gradient(place, argument)
        yield Edited(argument, 1.5, EXTRA if gradient else LOCAL, LACKS_FACTOR if gradient else POINT)
    for i, j in combinations(range(len(node.args)), 2):
        swapped = list(node.args)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        yield _either(ast.Call(node.func, swapped, node.keywords), 1.5, LOCAL)
    for k in range(len(node.keywords)):
        rest = node.keywords[:k] + node.keywords[k + 1 :]
        yield _either(
            ast.Call(node.func, node.args, rest), 1.5, AXIS if node.keywords[k].arg == "axis" else LOCAL
        )
    if len(node.args) == 1 and not node.keywords:
        yield from (_either(new, 2, LOCAL) for new in _pulled_out(node))
    for name in (other for kin in KINDRED if called(node) in kin for other in kin if other != called(node)):
        if isinstance(node.func, ast.Attribute):
            function = ast.Attribute(node.func.value, name, ast.Load())
            yield _either(ast.Call(function, node.args, node.keywords), 1, LOCAL)


def ones(place: Expression) -> Iterator[Edited]:
    """Take ones, or nothing, for a gradient."""
    if is_float(place.value) and isinstance(place.node, ast.Name) and place.node.id in place.upstream:
        yield Edited(fill("np.ones_like(A)", A=place.node), 1.5, UPSTREAM, UPSTREAM)
    if is_float(place.value) and not isinstance(place.node, ast.Constant):
        yield Edited(fill("np.zeros_like(A)", A=place.node), 2.5, LOCAL, "zero-gradient")


def indices(place: Expression) -> Iterator[Edited]:
    """Move an index one further or back; move a slice's end, or leave it out."""
    node = place.node
    if not isinstance(node, ast.Subscript):
        return
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    yield _either(node.value, 1.5, POINT)
    for k, item in enumerate(items):
        for new in _moved(item, place):
            changed = [*items[:k], new, *items[k + 1 :]]
            index = ast.Tuple(changed, ast.Load()) if isinstance(node.slice, ast.Tuple) else new
            yield _either(ast.Subscript(node.value, index, ast.Load()), 1.5, POINT)
    for i, j in combinations(range(len(items)), 2):
        changed = list(items)
        changed[i], changed[j] = changed[j], changed[i]
        yield _either(ast.Subscript(node.value, ast.Tuple(changed, ast.Load()), ast.Load()), 1.5, AXIS)


def copies(place: Expression) -> Iterator[Edited]:
    """Take a copy."""
    if isinstance(place.node, ast.Name | ast.Subscript) and place.dimensions > 0:
        yield _either(fill("A.copy()", A=place.node), 2, STATE)


def ranges(place: Expression) -> Iterator[Edited]:
    """Let a loop run the other way."""
    node = place.node
    if isinstance(place.parent, ast.For) and place.parent.iter is node:
        yield _either(fill("reversed(A)", A=node), 2, LACKS_TERM)
        if called(node) == "reversed" and isinstance(node, ast.Call) and node.args:
            yield _either(node.args[0], 1.5, LACKS_TERM)


FAMILIES: tuple[Callable[[Expression], Iterator[Edited]], ...] = (
    table_edits, fewer, numbers, comparisons, products, reductions, reshapes, calls, counts, names, wrapped, ones,
    indices, copies, ranges,
)  # fmt: skip


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the factors of a product, whichever way it is written."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.MatMult):
        return node.left, node.right
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if len(node.args) == 2 and node.func.attr in ("dot", "matmul", "outer", "multiply", "inner"):
        return node.args[0], node.args[1]
    return (node.func.value, node.args[0]) if len(node.args) == 1 and node.func.attr == "dot" else None


def _chain(node: ast.expr, kinds: Any) -> list[tuple[ast.operator, ast.expr]]:
    """Return the operands of a chain ``a * b / c``, each with the operator before it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
        right = (
            [(node.op, node.right)] if isinstance(node.op, ast.Div | ast.Sub) else _chain(node.right, kinds)
        )
        return [*_chain(node.left, kinds), *right]
    return [(ast.Mult() if ast.Mult in kinds else ast.Add(), node)]


def _bare(node: ast.expr) -> ast.expr:
    """Return what is transposed."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "T" else node


def _parts(node: ast.AST) -> tuple[ast.expr, str, Any, bool] | None:
    """Return (array, function, axis, keepdims) of ``array.sum(...)`` or ``np.sum(array, ...)``."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or called(node) not in REDUCTIONS
    ):
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
    return arguments[0], node.func.attr, axis, bool(keepdims)


def _reduction(array: ast.expr, name: str, axis: Any, keepdims: bool) -> ast.expr:
    inside = [] if axis is None else [f"axis={axis!r}"]
    inside += ["keepdims=True"] if keepdims else []
    return fill(f"A.{name}({', '.join(inside)})", A=array)


def _axes(rank: int) -> list[Any]:
    axes: list[Any] = [None, *range(rank)]
    if rank > 2:
        axes += [pair for size in range(2, rank) for pair in combinations(range(rank), size)]
    return axes


def _pulled_out(node: ast.Call) -> Iterator[ast.expr]:
    """``f(1 - a)`` becomes ``1 - f(a)``, ``f(-a)`` becomes ``-f(a)``: what was done inside is done outside."""
    inner = node.args[0]
    if isinstance(inner, ast.BinOp):
        yield ast.BinOp(inner.left, inner.op, ast.Call(node.func, [inner.right], []))
        yield ast.BinOp(ast.Call(node.func, [inner.left], []), inner.op, inner.right)
    elif isinstance(inner, ast.UnaryOp):
        yield ast.UnaryOp(inner.op, ast.Call(node.func, [inner.operand], []))


def _moved(item: ast.expr, place: Expression) -> Iterator[ast.expr]:
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
