"""The small edits of a backward: of one expression, by the table and by what is in scope there."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import combinations, permutations, product
from operator import attrgetter
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.signatures import returned_values
from handgrad.checking.repair.edit_table import Edited, in_context, is_of_a_term, table_edits
from handgrad.checking.repair.expressions import (
    Expression,
    Observed,
    dimensions,
    expressions,
    fill,
    is_float,
    is_size,
    names_in,
    number_of,
)
from handgrad.checking.repair.module_source import NUMPY, Change, Edit, ModuleSource, called
from handgrad.checking.repair.statement_edits import statement_changes
from handgrad.tolerance import close

KINDRED = (
    ("sin", "cos", "tan"), ("sinh", "cosh", "tanh"), ("exp", "log", "expm1", "log1p"), ("maximum", "minimum"),
    ("max", "min"), ("argmax", "argmin"), ("zeros_like", "ones_like"), ("zeros", "ones"), ("repeat", "tile"),
    ("sqrt", "square"), ("cumsum", "cumprod"), ("floor", "ceil", "round"), ("sum", "prod"), ("sign", "abs"),
    ("tril", "triu"), ("vstack", "hstack"), ("argsort", "sort"), ("set", "add"),
    ("scatter", "scatter_add"), ("scatter_", "scatter_add_"), ("index_copy", "index_add"), ("index_copy_", "index_add_"),
)  # fmt: skip
"""Functions that are taken for one another."""
MOST_AXES = 4  # that are put in any order
TURNED = 0.4  # more for each factor of a product that is transposed
EVERYWHERE = 0.6  # more for a name that is exchanged at several places of a statement: fewer tokens may do
CHAINS = ((ast.Mult, ast.Div), (ast.Add, ast.Sub))
LITTLE = 4  # a number of rows that is no larger may be any constant
LIBRARIES = ("np", "numpy", "jnp", "torch")
REDUCTIONS = ("sum", "mean", "max", "min", "var", "std", "cumsum")


def small_changes(
    source: ModuleSource, observed: Observed, nodes: Iterable[ast.AST] | None = None
) -> list[Change]:
    """Return every small edit of what backward runs, or of some nodes of it, the smallest first."""
    nodes = list(nodes if nodes is not None else (node for unit in source.units for node in ast.walk(unit)))
    places = list(expressions(source, observed, nodes))
    every = [*statement_changes(source, observed, nodes), *expression_changes(places), *renamed(places)]
    return sorted(every, key=attrgetter("cost"))


def expression_changes(places: Sequence[Expression]) -> Iterator[Change]:
    """Yield every small edit of one expression."""
    for place in places:
        for family in FAMILIES:
            for edited in family(place):
                new, cost, undoes, makes = in_context(place, edited)
                yield Change((_instead(place, new),), cost, undoes, makes)


def _instead(place: Expression, new: ast.expr) -> Edit:
    """Return the edit that puts an expression in another's place; ``x = x`` is left out."""
    match place.parent, new:
        case ast.Assign([ast.Name(target)]) as statement, ast.Name(name) if name == target:
            return Edit(statement, ())
    return Edit(place.node, new)


def _either(new: ast.expr, cost: float, code: str = "wrong-local-derivative") -> Edited:
    """Return an edit of which nobody can say which side is right by its form."""
    return Edited(new, cost, code, code)


def fewer(place: Expression) -> Iterator[Edited]:
    """Leave out two factors of a product, or two terms of a sum, or all but one."""
    node, holder = place.node, place.parent
    for kinds, makes in zip(CHAINS, ("missing-local-derivative", "missing-term"), strict=True):
        if not _is_of(node, kinds) or _is_of(holder, kinds):
            continue
        parts = _chain(node, kinds)
        for count in {1, len(parts) - 2} if len(parts) > 2 else ():
            for rest in combinations(parts, count):
                if isinstance(rest[0][0], kinds[0]):
                    new = reduce(lambda a, part: ast.BinOp(a, *part), rest[1:], rest[0][1])
                    yield Edited(new, 2, "extra-term", makes)


def _is_of(node: ast.AST, kinds: Any) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, kinds)


def _chain(node: ast.expr, kinds: Any) -> list[tuple[ast.operator, ast.expr]]:
    """Return the operands of a chain ``a * b / c``, each with the operator before it."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, kinds):
        return [(kinds[0](), node)]
    commutes = isinstance(node.op, kinds[0])
    return [*_chain(node.left, kinds), *(_chain(node.right, kinds) if commutes else [(node.op, node.right)])]


def products(place: Expression) -> Iterator[Edited]:
    """Take another product of the same two factors: ``@``, ``*``, ``np.outer``, with transposes."""
    factors = [_untransposed(factor) for factor in _factors(place.node)]
    ranks = [dimensions(place.of(factor)) for factor in factors]
    if not factors or min(ranks) < 1:
        return
    turned = [["{}", "{}.T" if rank == 2 else "np.swapaxes({}, -1, -2)"][: 1 + (rank > 1)] for rank in ranks]
    templates = ["np.outer(A, B)", "np.outer(B, A)"] if ranks == [1, 1] else []
    for a, b in product(turned[0], turned[1]):
        first, second = a.format("A"), b.format("B")
        templates += [f"{first} * {second}", f"{first} @ {second}", f"{second} @ {first}"]
    for template in templates:
        new = fill(template, A=factors[0], B=factors[1])
        cost = 1.5 + TURNED * (template.count(".T") + template.count("swapaxes"))
        alike = _joins(new) == _joins(place.node)
        yield _either(new, cost, "transposed" if alike else "elementwise-instead-of-matmul")
    for template in {(2, 1): ["A * B[:, None]"], (1, 2): ["A[:, None] * B"]}.get((ranks[0], ranks[1]), []):
        yield _either(fill(template, A=factors[0], B=factors[1]), 1.5, "wrong-axis")


def _joins(node: ast.AST) -> str:
    """Return how a product joins its factors: entry by entry, as matrices, or each with each."""
    if isinstance(node, ast.BinOp):
        return "matmul" if isinstance(node.op, ast.MatMult) else "multiply"
    return {"dot": "matmul"}.get(called(node), called(node))


def _factors(node: ast.expr) -> tuple[ast.expr, ...]:
    """Return the two factors of a product, whichever way it is written, or none."""
    match node:
        case ast.BinOp(left, ast.Mult() | ast.MatMult(), right):
            return left, right
        case ast.Call(ast.Attribute(_, "dot" | "matmul" | "outer" | "multiply" | "inner"), [left, right]):
            return left, right
        case ast.Call(ast.Attribute(left, "dot"), [right]):
            return left, right
    return ()


def _untransposed(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Attribute) and node.attr == "T" else node


def numbers(place: Expression) -> Iterator[Edited]:
    """Take another number where one stands: those that the file has elsewhere are nearest."""
    node = place.node
    n = number_of(node) if isinstance(node, ast.Constant) else None
    if n is None:
        return
    elsewhere = (number_of(other) for other in ast.walk(place.source.tree))
    found: dict[float, float] = {other: 1.0 for other in elsewhere if other is not None}
    for other in (n + 1, n - 1, 2 * n, n / 2, n * n, 0, 1, 2, 0.5):
        found.setdefault(other, 1.3)
    found.pop(n)
    arrays = [each for each in place.scope.values() if isinstance(each, np.ndarray)]
    counted = {count for each in arrays for count in (each.size, *each.shape) if count > LITTLE}
    for value, cost in found.items():
        if value and n and any(close(max(value / n, n / value), count) for count in counted):
            continue  # it is a number of rows, which an edit of its own puts in
        tidy = int(value) if isinstance(n, int) and value == int(value) else value
        if tidy < 0 and isinstance(place.parent, ast.UnaryOp):
            continue  # nobody writes --1
        new = ast.Constant(tidy) if tidy >= 0 else fill("-A", A=ast.Constant(-tidy))
        trivial = tidy in (0, 1) and not isinstance(place.parent, ast.Compare)
        code = "wrong-sign" if value == -n else "wrong-local-derivative"
        yield _either(new, 1.6 if trivial else cost, code)


def as_scaled_forward(place: Expression) -> Iterator[Edited]:
    """Take a number that forward multiplies or divides by for a constant, or put it in as a factor of a whole gradient."""
    node, value = place.node, number_of(place.node) if isinstance(place.node, ast.Constant) else None
    whole = place.is_whole and is_float(place.value) and value is None
    there = {ast.dump(each) for each in ast.walk(node)}
    for each in place.source.factors if whole or value not in (None, 0) else ():
        if node in ast.walk(each) or ast.dump(each) in there:  # no part of itself, and nothing that cancels
            continue
        number = _number_at(each, place)
        if number is None or number == value:
            continue
        code = "batch-mean-vs-sum" if is_size(each) else "constant-factor"
        if not whole:
            yield _either(each, 1.2, code)
        elif not isinstance(each, ast.Name | ast.Attribute):  # which the table puts in
            for template in ("A / E", "A * E"):
                yield _either(fill(template, A=node, E=each), 2.2, code)


def _number_at(node: ast.expr, place: Expression) -> float | None:
    """Return the number that an expression of forward's has at a place of backward, or None."""
    if not _is_in_scope(node, place):
        return None
    try:
        value = eval(ast.unparse(node), place.source.globals | place.scope)
    except Exception:  # whatever the author's own objects raise
        return None
    return float(value) if dimensions(value) == 0 and not isinstance(value, bool) else None


def counts(place: Expression) -> Iterator[Edited]:
    """Take another number of rows, columns or entries; one more or one less."""
    node, value = place.node, place.value
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or isinstance(node, ast.Constant):
        return
    for template in ("A - 1", "A + 1"):
        yield _either(fill(template, A=node), 2)
    code = "batch-mean-vs-sum" if is_size(node) else "wrong-local-derivative"
    for k, size in enumerate(place.sizes):
        yield _either(size, 1.5 + 0.05 * k, code)


def names(place: Expression) -> Iterator[Edited]:
    """Take another name in scope for a name or a number, one of the same shape first."""
    node, own = place.node, ast.unparse(place.node)
    is_name = isinstance(node, ast.Name) or own in place.scope
    if not (is_name or isinstance(node, ast.Constant)) or dimensions(place.value) < 0:
        return
    if isinstance(place.value, bool):
        return
    own_code = "wrong-evaluation-point" if is_name else "wrong-local-derivative"
    for name, value in place.scope.items():
        if name != own and dimensions(value) >= 0:
            # a gradient for another: a factor is missing between them, or one is too many
            both = is_name and place.is_gradient(node) and place.is_gradient(fill(name))
            code = "missing-local-derivative" if both else own_code
            alike = np.shape(value) == np.shape(place.value) and is_float(value) == is_float(place.value)
            yield _either(fill(name), 1 if alike else 1.6, code)


def renamed(places: Sequence[Expression]) -> Iterator[Change]:
    """Take another value at all places of a statement: ``z * (1 - z)`` for ``a * (1 - a)``, or for ``sigmoid(z) * …``."""
    groups: dict[tuple[int, str], list[Expression]] = {}
    for place in places:
        own = ast.unparse(place.node)
        if own in place.scope and is_float(place.value):
            groups.setdefault((id(place.source.enclosing(place.node, ast.stmt)), own), []).append(place)
    for (_, own), several in groups.items():
        if len(several) < 2:
            continue
        first, shape = several[0], np.shape(several[0].value)
        others = [
            fill(name) for name, value in first.scope.items()
            if name != own and is_float(value) and np.shape(value) == shape
        ]  # fmt: skip
        for new in (*others, *_applied(first)):
            edits = tuple(Edit(place.node, new) for place in several)
            code = "wrong-evaluation-point"
            yield Change(edits, 1 + EVERYWHERE + (not isinstance(new, ast.Name)), code, code)


def wrapped(place: Expression) -> Iterator[Edited]:
    """Apply a function that forward or backward applies elsewhere: the derivative was taken at another value."""
    for new in _applied(place):
        yield Edited(new, 1.8, "wrong-evaluation-point", "extra-term")


def _applied(place: Expression) -> Iterator[ast.expr]:
    """Yield calls of the file's functions of one argument with a name; of what they return in a tuple, the first."""
    node = place.node
    if not isinstance(node, ast.Name) or not is_float(place.value) or node.id in place.upstream:
        return
    for function in place.source.functions_of_one if not isinstance(place.parent, ast.Call) else ():
        own = place.source.globals.get(ast.unparse(function))
        several = isinstance(own, FunctionType) and len(returned_values(own)) > 1
        call = ast.Call(function, [node], [])
        yield ast.Subscript(call, ast.Constant(0), ast.Load()) if several else call


def reductions(place: Expression) -> Iterator[Edited]:
    """Add a sum or leave it out, sum over other axes, with or without keepdims, sum for mean."""
    node = place.node
    found = _parts(node)
    not_summed = (
        "missing-term" if _is_in_sum(place) else "broadcast-not-summed"
    )  # of a formula, the other terms
    if found is not None:
        array, name, axis, keepdims = found
        rank = dimensions(place.of(array))
        if rank < 1:
            return
        undoes = "averaged-batch" if name in ("sum", "mean") else "extra-term"
        yield Edited(array, 2, undoes, not_summed)
        shape = np.shape(place.of(array))
        own = axis % rank if isinstance(axis, int) else axis
        for new_name in (name, {"sum": "mean", "mean": "sum", "max": "sum"}.get(name, "sum")):
            renamed = "batch-mean-vs-sum" if {name, new_name} == {"sum", "mean"} else "wrong-local-derivative"
            for new_axis, new_keep in product(_axes(rank), (False, True)):
                if isinstance(new_axis, int) and new_axis != own and shape[new_axis] == 1:
                    continue  # it sums nothing
                alike = (new_name == name) + (new_axis == own) + (new_keep == keepdims)
                if alike < 3:
                    new = _reduction(array, new_name, axis if new_axis == own else new_axis, new_keep)
                    code = "wrong-shape" if new_axis == own and is_of_a_term(place) else "wrong-axis"
                    yield _either(new, 3 - alike + 0.1 * new_keep, renamed if new_name != name else code)
    elif dimensions(place.value) > 0 and is_float(place.value):
        for name, axis, keep in product(("sum", "mean"), _axes(dimensions(place.value)), (False, True)):
            cost = 2.5 + 0.5 * keep + (name == "mean")
            yield Edited(_reduction(node, name, axis, keep), cost, not_summed, "averaged-batch")


def _is_in_sum(place: Expression) -> bool:
    """Whether an expression is in a sum or a difference."""
    node: ast.AST = place.node
    while isinstance(node := place.source.parents[id(node)][0], ast.expr):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return True
    return False


def _parts(node: ast.AST) -> tuple[ast.expr, str, Any, bool] | None:
    """Return (array, function, axis, keepdims) of ``array.sum(...)`` or ``np.sum(array, ...)``."""
    if not isinstance(node, ast.Call) or called(node) not in REDUCTIONS or isinstance(node.func, ast.Name):
        return None
    owner = node.func.value  # type: ignore[attr-defined]
    is_module = isinstance(owner, ast.Name) and owner.id in LIBRARIES
    array, *places = [*node.args] if is_module else [owner, *node.args]
    given = {NUMPY.get(str(keyword.arg), keyword.arg): keyword.value for keyword in node.keywords}
    given |= dict(zip(("axis", "keepdims"), places, strict=False))
    if len(places) > 2 or given.keys() - {"axis", "keepdims"}:
        return None
    try:
        axis, keepdims = (
            ast.literal_eval(given.get(each, ast.Constant(None))) for each in ("axis", "keepdims")
        )
    except ValueError:
        return None
    return (array, called(node), axis, bool(keepdims)) if keepdims in (None, False, True) else None


def _reduction(array: ast.expr, name: str, axis: Any, keepdims: bool) -> ast.expr:
    inside = [*([] if axis is None else [f"axis={axis!r}"]), *(["keepdims=True"] if keepdims else [])]
    return fill(f"A.{name}({', '.join(inside)})", A=array)


def _axes(rank: int) -> list[Any]:
    several = [axes for count in range(2, rank) for axes in combinations(range(rank), count)]
    return [None, *range(rank), *several]


def calls(place: Expression) -> Iterator[Edited]:
    """Leave out a call or a keyword, exchange arguments, call a kindred function."""
    node = place.node
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    operands = [owner, *node.args] if owner is not None and dimensions(place.of(owner)) >= 0 else node.args
    for argument in operands if _parts(node) is None else ():
        if place.is_gradient(argument):
            yield Edited(argument, 1.5, "extra-term", "missing-local-derivative")
        else:
            yield Edited(argument, 1.5, "wrong-local-derivative", "wrong-evaluation-point")
    if called(node) == "isclose" and len(node.args) > 1:
        equal = ast.Compare(node.args[0], [ast.Eq()], [node.args[1]])
        yield _either(equal, 1.2)
    for a, b in combinations(node.args, 2):
        swapped = [b if item is a else a if item is b else item for item in node.args]
        yield _either(ast.Call(node.func, swapped, node.keywords), 1.5)
    for keyword in node.keywords:
        rest = [other for other in node.keywords if other is not keyword]
        code = "wrong-axis" if keyword.arg == "axis" else "wrong-local-derivative"
        yield _either(ast.Call(node.func, node.args, rest), 1.5, code)
    for keyword in _options_elsewhere(place.source, node):
        yield _either(ast.Call(node.func, node.args, [*node.keywords, keyword]), 1.2)
    for name in (other for kin in KINDRED if called(node) in kin for other in kin if other != called(node)):
        if owner is not None:
            yield _either(ast.Call(ast.Attribute(owner, name, ast.Load()), node.args, node.keywords), 1)


def _options_elsewhere(source: ModuleSource, node: ast.Call) -> Iterator[ast.keyword]:
    """Yield the constants that a function is given by name where it is called otherwise: ``sigmoid(a, derivative=True)``."""
    own, seen = {keyword.arg for keyword in node.keywords}, set()
    for other in ast.walk(source.tree) if isinstance(node.func, ast.Name) else ():
        if isinstance(other, ast.Call) and ast.dump(other.func) == ast.dump(node.func):
            for keyword in other.keywords:
                text = ast.unparse(keyword)
                if isinstance(keyword.value, ast.Constant) and keyword.arg not in own and text not in seen:
                    seen.add(text)
                    yield keyword


def copies(place: Expression) -> Iterator[Edited]:
    """Take a copy."""
    node = place.node
    if isinstance(node, ast.Name | ast.Subscript) and dimensions(place.value) > 0:
        yield _either(fill("A.copy()", A=node), 2, "stale-or-mutated-state")


def as_forward(place: Expression) -> Iterator[Edited]:
    """Compute a value of forward's as forward does: the same expression for a name, the same argument for a call.

    Of a vector that forward penalises without its first entry, the intercept, leave that out too.
    """
    node = place.node
    bodies = map(place.source.definitions.__getitem__, place.source.forward)
    texts = [
        ast.unparse(each) for each in bodies if isinstance(node, ast.Name) and dimensions(place.value) == 1
    ]
    if any(f"{ast.unparse(node)}[1:]" in text for text in texts):
        yield Edited(fill("np.append(0.0, A[1:])", A=node), 1.8, "extra-term", "missing-term")
    for definition in map(place.source.definitions.__getitem__, place.source.forward):
        for other in ast.walk(definition):
            new: list[ast.expr] = []
            if isinstance(other, ast.Assign) and isinstance(place.parent, ast.Assign):
                is_same = ast.dump(other.targets[0]) == ast.dump(place.parent.targets[0])
                new = [other.value] if is_same else []
            elif (
                isinstance(other, ast.Call) and isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            ):
                is_same = called(other) == called(node) and len(other.args) == len(node.args)
                several = [[*node.args[:k], arg, *node.args[k + 1 :]] for k, arg in enumerate(other.args)]
                new = [ast.Call(node.func, each, node.keywords) for each in several] if is_same else []
            for each in new:
                if ast.dump(each) != ast.dump(node) and _is_in_scope(each, place):
                    yield _either(each, 1.8, "wrong-evaluation-point")


def _is_in_scope(node: ast.expr, place: Expression) -> bool:
    known = {*place.scope, *place.source.globals, *dir(builtins)}
    return names_in(node) <= known


def opposite(place: Expression) -> Iterator[Edited]:
    """Move back where forward moves on: a roll, or a function of the file's, by the opposite of whole numbers."""
    node = place.node
    own = isinstance(node, ast.Call) and isinstance(place.source.globals.get(called(node)), FunctionType)
    if isinstance(node, ast.Call) and (own or called(node) == "roll"):
        for k, argument in enumerate(node.args):
            value = place.of(argument)
            if dimensions(value) >= 0 and np.asarray(value).dtype.kind == "i":
                arguments = [*node.args[:k], fill("-A", A=argument), *node.args[k + 1 :]]
                yield _either(ast.Call(node.func, arguments, node.keywords), 1.3, "wrong-sign")


def turned(place: Expression) -> Iterator[Edited]:
    """Put an array's axes in the order in which forward puts some, or back; where they are put in an order, in any other."""
    node = place.node
    if isinstance(node, ast.Call) and 2 < len(order := _axes_order(node)) <= MOST_AXES:
        for other in map(list, permutations(order)):
            if other != order:
                call = ast.Call(node.func, [ast.Constant(axis) for axis in other], [])
                yield _either(call, 1.9, "wrong-position")
    for definition in map(place.source.definitions.__getitem__, place.source.forward):
        for there in ast.walk(definition) if dimensions(place.value) > 2 else ():
            if not isinstance(there, ast.Call) or len(order := _axes_order(there)) != dimensions(place.value):
                continue
            for axes in (order, [order.index(k) for k in range(len(order))]):
                new = fill(f"A.{called(there)}({', '.join(map(str, axes))})", A=node)
                yield _either(new, 1.8, "wrong-position")


def _axes_order(call: ast.Call) -> list[int]:
    """Return the order in which ``A.transpose(1, 0, 2)`` puts all axes; empty where that is no such call."""
    if called(call) not in ("transpose", "permute"):
        return []
    order = [each.value for each in call.args if isinstance(each, ast.Constant) and type(each.value) is int]
    return order if sorted(order) == list(range(len(call.args))) else []


FAMILIES: tuple[Callable[[Expression], Iterator[Edited]], ...] = (
    table_edits, fewer, numbers, as_scaled_forward, products, reductions, calls, counts, names, wrapped, copies,
    as_forward, opposite, turned,
)  # fmt: skip
