"""Naming a mistake by what mended it: the difference between the user's source and the proved repair."""

from __future__ import annotations

import ast

from handgrad.checking.diagnosis.differences import Pair, differences
from handgrad.checking.diagnosis.trees import (
    adds_at,
    axes,
    called,
    calls_in,
    functions,
    has_size,
    has_transpose,
    is_product,
    is_random,
    is_zeros,
    leading,
    multiplies,
    nameless,
    names_in,
    operand,
    reductions,
    renamed,
    same,
    stripped,
    text_of,
    types,
    without_copies,
    without_factor,
)

_HOLDERS = (ast.Subscript, ast.Call, ast.keyword)
_INDEX = (ast.FloorDiv, ast.Mod)  # arithmetic of positions

_MOVING = {"reshape", "swapaxes", "transpose", "moveaxis"}
_REDUCTIONS = {"sum", "cumsum", "mean", "max", "var", "std"}
_NARROW = {"float16", "float32", "half", "int", "astype"}
_UPSTREAM = {"g", "dout", "dy", "upstream", "grad_output"}

_COSTS = {
    "swapped-gradients": 0.9,
    "nondeterministic": 0.9,
    "wrong-axis": 1.3,
    "broadcast-not-summed": 1.3,
    "overwritten-not-accumulated": 1.3,
    "transposed": 1.4,
    "averaged-batch": 1.4,
    "ignores-upstream": 1.5,
    "batch-mean-vs-sum": 1.5,
    "elementwise-instead-of-matmul": 1.6,
    "wrong-sign": 1.6,
    "stale-or-mutated-state": 1.6,
    "zero-gradient": 1.4,
    "dtype-or-overflow": 1.4,
    "missing-term": 1.7,
    "extra-term": 1.8,
    "missing-local-derivative": 1.8,
    "wrong-evaluation-point": 1.9,
    "constant-factor": 2.2,
    "wrong-local-derivative": 2.6,
}


def code_of_edit(before: str, after: str) -> tuple[str, str, float] | None:
    """Return (code, words, cost) of the mistake that a repair mends, or None when its shape says nothing.

    Parameters
    ----------
    before, after
        The file's text, and the repaired one.

    Examples
    --------
    >>> code_of_edit("db = g.mean(axis=0)", "db = g.sum(axis=0)")[0]
    'batch-mean-vs-sum'
    >>> code_of_edit("dx = g * W.T", "dx = g @ W.T")[0]
    'elementwise-instead-of-matmul'
    """
    tree = ast.parse(before)
    pairs = list(differences(tree, ast.parse(after)))
    if not pairs or len(pairs) > 8:
        return None
    codes = [code for pair in pairs if (code := _by_place(tree, pair[0]) or _code(*pair)) is not None]
    if not codes:
        return None
    if _swapped(pairs):
        codes = ["swapped-gradients"]
    code = min(codes, key=lambda c: (-codes.count(c), _COSTS.get(c, 2.0)))
    old, new = pairs[0]
    words = (
        f"`{text_of(new)}` stands right where `{text_of(old)}` was wrong"
        if old and new
        else f"`{text_of(new or old)}` mends it"
    )
    return code, words, _COSTS.get(code, 2.0) + 0.05 * (len(pairs) - 1)


def _by_place(tree: ast.AST, old: ast.AST | None) -> str | None:
    """Name a mistake by what holds the part that changed: an axis, an index, the steps of a loop."""
    if old is None:
        return None
    holders = [
        node for node in ast.walk(tree)
        if (isinstance(node, _HOLDERS) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)))
        and node is not old and any(inner is old for inner in ast.walk(node))
    ]  # fmt: skip
    found = (_by_holder(holder, old) for holder in reversed(holders))  # the innermost is found last
    return next((code for code in found if code), None)


def _by_holder(holder: ast.AST, old: ast.AST) -> str | None:
    def holds(part: ast.AST) -> bool:
        return any(inner is old for inner in ast.walk(part))

    match holder:
        case ast.keyword(arg="axis" | "axes" | "dim"):
            return "wrong-axis"
        case ast.Call() if called(holder) in _MOVING or (
            called(holder) in ("sum", "mean") and old in holder.args
        ):
            return "wrong-axis"
        case ast.Call() if called(holder) == "range":
            return "missing-term"
        case ast.BinOp() if holds(holder.right):
            return "wrong-local-derivative"  # another power
        case ast.Subscript() if holds(holder.slice):
            return "wrong-evaluation-point"
    return None


def _swapped(pairs: list[Pair]) -> bool:
    """Whether two parts have changed places."""
    if len(pairs) != 2:
        return False
    (a, b), (c, d) = pairs
    return bool(a and b and c and d and ast.dump(a) == ast.dump(d) and ast.dump(b) == ast.dump(c))


def _code(old: ast.AST | None, new: ast.AST | None) -> str | None:
    """Name the mistake that one change mends."""
    if isinstance(old, ast.AugAssign) and new is None:
        return "extra-term" if isinstance(old.op, ast.Add) else "stale-or-mutated-state"
    if old is not None and new is not None and (code := _calls(old, new) or _types(old, new)):
        return code
    if is_random(old):
        return "nondeterministic"
    if (adds_at(new) and not adds_at(old)) or (
        isinstance(new, ast.AugAssign) and isinstance(old, ast.Assign)
    ):
        return "overwritten-not-accumulated"
    if same(without_copies(new), old) and not same(new, old):
        return "stale-or-mutated-state"
    if old is None or new is None:
        return "missing-term" if old is None else "extra-term"
    for rule in (_turned, _averages, _summed, _signs, _operators, _points):
        if code := rule(old, new):
            return code
    return "wrong-local-derivative"


def _calls(old: ast.AST, new: ast.AST) -> str | None:
    """Something put into a call, taken out of one, or in place of ones or zeros."""
    came, gone = functions(new) - functions(old), functions(old) - functions(new)
    if gone & {"ones", "ones_like"}:
        return "ignores-upstream"
    if is_zeros(old) and not is_zeros(new):
        return "zero-gradient"
    if came & {"conj", "conjugate"}:
        return "transposed"
    if any(same(operand(call), new) for call in leading(old) if called(call) in ("mean", "sum")):
        return "averaged-batch"
    for name in sorted(names_in(new) ^ names_in(old)):
        if same(without_factor(new, name), old) and not same(new, old):
            return "missing-local-derivative"
        if same(without_factor(old, name), new) and not same(new, old):
            return "extra-term"
    if isinstance(old, ast.Call) and any(same(argument, new) for argument in old.args):
        return "extra-term"
    wraps = isinstance(new, ast.Call) and any(same(argument, old) for argument in new.args)
    if wraps and not reductions(new):
        is_value = isinstance(old, ast.Name) and not old.id.startswith(("d", "grad"))
        return "wrong-evaluation-point" if is_value else "missing-local-derivative"
    return None


def _types(old: ast.AST, new: ast.AST) -> str | None:
    return "dtype-or-overflow" if (types(old) - types(new)) & _NARROW else None


def _turned(old: ast.AST, new: ast.AST) -> str | None:
    if same(stripped(old), stripped(new)) and not same(old, new):
        return "transposed"
    if is_product(old, ast.MatMult) and is_product(new, ast.MatMult) and names_in(old) == names_in(new):
        return "transposed"
    if (functions(new) - functions(old)) & {"swapaxes", "transpose"} and names_in(old) <= names_in(new):
        return "transposed"
    return None


def _averages(old: ast.AST, new: ast.AST) -> str | None:
    joins = any(isinstance(node, ast.Mult | ast.Subscript) for node in ast.walk(old))
    joins |= "outer" in functions(old)
    if joins and multiplies(new) and len(reductions(old)) >= 2 > len(reductions(new)):
        return "averaged-batch"
    for one, other in ((old, new), (new, old)):
        if reductions(one) and same(renamed(one, "mean", "sum"), other):
            return "batch-mean-vs-sum"
    if is_product(old, ast.Mult) and not multiplies(old) and names_in(new) - {"np"} <= names_in(old):
        joins = multiplies(new) or bool(functions(new) & {"outer", "einsum"})
        return "elementwise-instead-of-matmul" if joins else None
    if isinstance(new, ast.Call) and "outer" in functions(new):
        joins = multiplies(old) or bool(functions(old) & {"matmul", "dot"})
        return "elementwise-instead-of-matmul" if joins else None
    return None


def _summed(old: ast.AST, new: ast.AST) -> str | None:
    if (
        names_in(old) - {"np"} == names_in(new) - {"np"}
        and axes(old) != axes(new)
        and not has_transpose(old)
        and not has_transpose(new)
        and functions(old) & functions(new) & _REDUCTIONS
    ):
        return "wrong-axis"
    if any(called(call) == "sum" and same(operand(call), old) for call in calls_in(new)):
        return "broadcast-not-summed"
    return None


def _signs(old: ast.AST, new: ast.AST) -> str | None:
    for one, other in ((old, new), (new, old)):
        if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) and same(one.operand, other):
            return "wrong-sign"
    if isinstance(old, ast.BinOp) and isinstance(new, ast.BinOp):
        kinds = {type(old.op), type(new.op)}
        if kinds & set(_INDEX):
            return "wrong-evaluation-point"
        if kinds == {ast.Add, ast.Sub} or (kinds == {ast.Sub} and same(old.left, new.right)):
            return "wrong-sign"
    return None


def _operators(old: ast.AST, new: ast.AST) -> str | None:
    """Name a factor or a term that came or went."""
    for a, b, gone in ((old, new, False), (new, old, True)):
        if not isinstance(b, ast.BinOp):
            continue
        for kept, other in ((b.left, b.right), (b.right, b.left)):
            if ast.dump(kept) != ast.dump(a):
                continue
            if isinstance(b.op, ast.Add | ast.Sub):
                return "extra-term" if gone else "missing-term"
            if isinstance(b.op, ast.Pow):
                return "wrong-local-derivative"
            return _factor_code(other, gone)
    return None


def _factor_code(factor: ast.AST, gone: bool) -> str:
    if "grad_output" in names_in(factor) or (isinstance(factor, ast.Name) and factor.id in _UPSTREAM):
        return "extra-term" if gone else "ignores-upstream"
    if isinstance(factor, ast.Constant) or (
        isinstance(factor, ast.UnaryOp) and isinstance(factor.operand, ast.Constant)
    ):
        return "wrong-local-derivative"  # a constant for the whole gradient is seen in the numbers
    if has_size(factor):
        return "batch-mean-vs-sum"
    return "extra-term" if gone else "missing-local-derivative"


def _points(old: ast.AST, new: ast.AST) -> str | None:
    if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
        return "wrong-local-derivative"
    if isinstance(old, ast.Name) or (isinstance(old, ast.Subscript) and isinstance(new, ast.Subscript)):
        return "wrong-evaluation-point"
    if same(nameless(old), nameless(new)) and names_in(old) != names_in(new):
        return "wrong-evaluation-point"
    return None
