"""What makes the numbers right and is no repair: it takes a mistake out of sight, and leaves it where it is."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import LEARNING_RATES, is_gradient_name, plain
from handgrad.checking.interfaces.signatures import names_of
from handgrad.checking.repair.expressions import Observed, is_float, number_of
from handgrad.checking.repair.module_source import Change, Edit, ModuleSource, called

CLOSE = ("isclose", "allclose")
SQUARES = (
    "square", "var", "std", "norm", "power", "pow",
)  # fmt: skip  # whose derivatives have a factor of 2, or of a half
BOUNDED = ("maximum", "minimum", "clip")  # as good as comparisons


def hides(source: ModuleSource, observed: Observed, change: Change) -> bool:
    """Whether a change is no repair.

    An edit that takes a value from itself, gives a wrong function other numbers, moves a threshold, or undoes an update;
    new code that leaves a wrong function as it is, or has arrays of numbers.
    """
    if change.is_new:
        return _leaves_wrong(source, change) or _is_data(source, change)
    return any(
        _is_cancelled(source, edit) or _is_given_otherwise(source, edit) or _moves_threshold(source, observed, edit)
        or _is_size_by_chance(source, observed, edit) or _undoes_update(source, edit)
        or _is_own_index(source, edit) or _is_one_by_chance(source, observed, edit)
        for edit in change.edits
    )  # fmt: skip


def _leaves_wrong(source: ModuleSource, change: Change) -> bool:
    """Whether what is written anew calls a function of backward's alone no more, which stays as wrong as it is."""
    alone = {function.__name__ for function in source.functions if function not in source.forward}
    before, after = (
        {called(node) for part in parts for node in ast.walk(part)} & alone
        for parts in ([edit.old for edit in change.edits], _new_parts(change))
    )
    return bool(before - after)


def _is_data(source: ModuleSource, change: Change) -> bool:
    """Whether what is written anew has an array of numbers that its author has not: it fits these inputs alone."""
    known = {ast.dump(node) for node in ast.walk(source.tree) if _is_literal_array(node)}
    new = (node for part in _new_parts(change) for node in ast.walk(part))
    return any(ast.dump(node) not in known for node in new if _is_literal_array(node))


def _new_parts(change: Change) -> list[ast.AST]:
    return [part for edit in change.edits for part in edit.parts]


def _is_literal_array(node: ast.AST) -> bool:
    is_array = called(node) in ("array", "asarray")
    return (
        is_array and isinstance(node, ast.Call) and all(isinstance(each, ast.List) for each in node.args[:1])
    )


def _undoes_update(source: ModuleSource, edit: Edit) -> bool:
    """Whether an edit takes an update back, or changes what it moves by: gradients are computed elsewhere."""
    if not isinstance(edit.old, ast.expr):
        return False
    before, after = (
        Counter(names_of(edit.old)),
        Counter(name for each in edit.parts for name in names_of(each)),
    )
    statement = source.enclosing(edit.old, ast.stmt)
    is_update = _has_rate(names_of(statement)) and not _computes(statement)
    return _has_rate(before.keys() ^ after.keys()) or (is_update and before != after)


def _computes(update: ast.AST) -> bool:
    """Whether an update computes its gradient itself: by a product of arrays, or of two numbers that are no gradients."""
    nodes = list(ast.walk(update))
    products = [each for each in nodes if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult)]
    of_numbers = len(products) > 1 and not any(map(is_gradient_name, names_of(update)))
    return of_numbers or any(isinstance(each, ast.MatMult | ast.Call) for each in nodes)


def _has_rate(names: Iterable[str]) -> bool:
    return any(plain(name) in LEARNING_RATES for name in names)


def _is_cancelled(source: ModuleSource, edit: Edit) -> bool:
    """Whether something is subtracted from itself, or divided by itself, that was not before."""
    holder = source.parents[id(edit.old)][0]
    parts = list(edit.parts)
    if isinstance(holder, ast.BinOp) and isinstance(edit.new, ast.expr):
        sides = (edit.new if side is edit.old else side for side in (holder.left, holder.right))
        left, right = sides
        parts.append(ast.BinOp(left, holder.op, right))
    return any(any(map(_cancels, ast.walk(part))) for part in parts) and not any(
        map(_cancels, ast.walk(edit.old))
    )


def _is_size_by_chance(source: ModuleSource, observed: Observed, edit: Edit) -> bool:
    """Whether an edit writes a number that is a size here, or the root of one, and that no square in forward gives."""
    scope = observed.scopes.get(id(source.enclosing(edit.old, ast.stmt)), {})
    sizes = {int(value) for value in scope.values() if isinstance(value, int | np.integer)}
    sizes |= {size for value in scope.values() if isinstance(value, np.ndarray) for size in value.shape}
    holder = source.parents[id(edit.old)][0]
    is_factor = isinstance(holder, ast.BinOp) and isinstance(holder.op, ast.Mult | ast.Div)
    within = edit.parts if is_factor else []
    written = {*_factors(edit.parts), *(abs(n) for each in within if (n := number_of(each)) is not None)}
    new = written - {*_factors([edit.old]), 0, 1}
    alike = (np.isclose(size, (n, n**2, 1 / n, n**-2)).any() for size in sizes if size > 1 for n in new)
    if not any(alike):
        return False
    nodes = [node for each in source.forward for node in ast.walk(source.definitions[each])]
    powers = any(isinstance(node, ast.Pow) or called(node) in SQUARES or _is_square(node) for node in nodes)
    return not powers and not {*_factors(nodes)} - {0, 1}


def _is_one_by_chance(source: ModuleSource, observed: Observed, edit: Edit) -> bool:
    """Whether a factor becomes a name that is 1 here, as the upstream gradient of a loss is: to leave it out says more."""
    scope = observed.scopes.get(id(source.enclosing(edit.old, ast.stmt)), {})
    holder = source.parents[id(edit.old)][0]
    is_factor = isinstance(holder, ast.BinOp) and isinstance(holder.op, ast.Mult | ast.Div)
    value = scope.get(edit.new.id) if is_factor and isinstance(edit.new, ast.Name) else None
    return value is not None and np.ndim(value) == 0 and value == 1


def _is_own_index(source: ModuleSource, edit: Edit) -> bool:
    """Whether a number in an index becomes what forward has in none: ``x[t - 5]`` is ``x[t]`` of five.

    The variable of a loop around it may be an index by itself: ``w[j]`` for ``w[0]``.
    """
    new = edit.new
    if not isinstance(edit.old, ast.Constant) or not isinstance(new, ast.Name | ast.Constant | ast.UnaryOp):
        return False
    if isinstance(new, ast.Name) and isinstance(source.parents[id(edit.old)][0], ast.Subscript):
        around: ast.AST = edit.old
        while isinstance(around := source.parents[id(around)][0], ast.expr | ast.stmt):
            loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
            if any(new.id in names_of(loop.target) for loop in loops):
                return False
    node: ast.AST = edit.old
    while isinstance(node, ast.expr) and number_of(new) not in (0, 1):
        inside, node = node, source.parents[id(node)][0]
        if isinstance(node, ast.Subscript) and inside is node.slice:
            trees = [source.definitions[each] for each in source.forward]
            slices = (
                each.slice for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Subscript)
            )
            return ast.dump(new) not in {ast.dump(each) for part in slices for each in ast.walk(part)}
    return False


def _is_square(node: ast.AST) -> bool:
    """Whether an expression is a product of twice the same: ``W * W``."""
    return isinstance(node, ast.BinOp) and ast.dump(node.left) == ast.dump(node.right)


def _factors(parts: Iterable[ast.AST]) -> Iterator[float]:
    """Yield the numbers, without their signs, that are multiplied with something or divide it."""
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            numbers = (number_of(side) for side in (node.left, node.right))
            yield from (abs(number) for number in numbers if number is not None)


def _cancels(node: ast.AST) -> bool:
    """Whether an expression is a difference or a quotient of twice the same."""
    is_either = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div)
    return is_either and ast.dump(node.left) == ast.dump(node.right)  # type: ignore[attr-defined]


def _is_given_otherwise(source: ModuleSource, edit: Edit) -> bool:
    """Whether an edit is inside what a function of backward's alone is given, which stays wrong."""
    right = frozenset() if source.in_one else source.forward
    own = {function.__name__ for function in source.functions if function not in right}
    holder: ast.AST = edit.old
    while isinstance(holder, ast.expr):
        inside, holder = holder, source.parents[id(holder)][0]
        is_argument = isinstance(holder, ast.Call) and inside is not holder.func
        if is_argument and called(holder) in own and not _renames(edit):
            return True
    return False


def _renames(edit: Edit) -> bool:
    """Whether an edit takes one name or entry for another, or exchanges what it is given."""
    names = ast.Name | ast.Attribute | ast.Subscript
    return (isinstance(edit.old, names) and isinstance(edit.new, names)) or isinstance(edit.old, ast.Call)


def _moves_threshold(source: ModuleSource, observed: Observed, edit: Edit) -> bool:
    """Whether an edit changes a comparison of floats with a number that forward does not compare with.

    Any such number may only have left all that was drawn on one side of it.
    """
    old, new = edit.old, edit.new
    if isinstance(new, tuple):
        return False
    if called(old) in CLOSE and called(new) in CLOSE:
        return True
    if isinstance(new, ast.Compare):
        return _has_own_threshold(source, observed, [new.left, *new.comparators])
    node: ast.AST = old
    while isinstance(holder := source.parents[id(node)][0], ast.expr | ast.keyword):
        if isinstance(holder, ast.Compare):
            operands = [new if each is old else each for each in (holder.left, *holder.comparators)]
            return _has_own_threshold(source, observed, operands)
        if number_of(new) is not None and isinstance(holder, ast.Call):
            if called(holder) in CLOSE:
                return number_of(new) != 0
            if called(holder) in BOUNDED:
                return number_of(new) not in {0, *_thresholds(source)}
        node = holder
    return False


def _has_own_threshold(source: ModuleSource, observed: Observed, operands: list[ast.expr]) -> bool:
    """Whether floats are compared with a number that is neither forward's, nor 0 between entries on both sides."""
    values = [observed.values.get(id(each)) for each in operands if number_of(each) is None]
    own = {number_of(each) for each in operands} - {None, *_thresholds(source)}
    if any(map(_has_both_sides, values)):
        own -= {0}
    return bool(own) and any(map(is_float, values))


def _has_both_sides(value: Any) -> bool:
    return is_float(value) and (np.size(value) == 1 or bool(np.any(value <= 0) and np.any(value > 0)))


def _thresholds(source: ModuleSource) -> set[float]:
    """Return the numbers that forward compares something with, by themselves or by a name of the file."""
    forward = [source.definitions[function] for function in source.forward]
    comparing = (
        node
        for definition in forward
        for node in ast.walk(definition)
        if isinstance(node, ast.Compare) or called(node) in BOUNDED
    )
    nodes = [node for each in comparing for node in ast.walk(each)]
    names = (source.globals.get(node.id) for node in nodes if isinstance(node, ast.Name))
    own = (value for value in names if isinstance(value, float | int))
    return {*own, *(number for number in map(number_of, nodes) if number is not None)}
