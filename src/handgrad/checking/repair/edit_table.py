"""The table of edits: which code is written where another was meant, and the mistake that it is.

A row is used in both directions and on both sides. In a wrong backward, an edit *undoes* a mistake: that is a repair.
In the right gradient, the same edit *makes* one: that is a mutation. Either way the mistake is known by its row.
Capital letters stand for parts: ``A`` and ``B`` for any, ``M`` for a matrix, ``T`` for an array of more axes, ``N`` for a
size, ``U`` for a name in scope where it is put in. A row's cost is about the number of tokens that change, and a little
more for what people get wrong less often: the cheapest edit that explains the numbers is the one that is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.repair.expressions import (
    Expression,
    dimensions,
    fill,
    is_float,
    is_size,
    names_in,
    parsed,
)
from handgrad.checking.repair.module_source import called, calls_in

LIKE_IT = 0.1  # more for each further size that would be as likely
OF_A_WHOLE = ("A / np.sqrt(N)", "A * np.sqrt(N)", "A / N ** 2")  # factors of all that is assigned or returned
PUT_IN = 1.2  # more for a factor or term that is put in: there are as many as names in scope
OF_A_FORMULA = 0.3  # more to change a formula as a whole: its parts are where people slip
TURNED_FORMULA = 1.0  # the same for a transpose
FROM_A_NUMBER = 0.3  # more to turn ``1 - a`` around, which is not a prediction minus a target


class Edited(NamedTuple):
    """What takes an expression's place: its cost, about the tokens that change, and the mistake it undoes or makes."""

    new: ast.expr
    cost: float
    undoes: str
    makes: str


class Row(NamedTuple):
    """Two texts, one of which is written for the other: the second for the first makes, the first for the second undoes."""

    undoes: str
    makes: str
    before: str
    after: str
    cost: float


def _either(code: str, cost: float, *pairs: str) -> list[Row]:
    """Return rows of one mistake, whichever of the two texts is the right one."""
    return [Row(code, code, before, after, cost) for before, after in (pair.split(" ~ ") for pair in pairs)]


ROWS: list[Row] = [
    *_either("wrong-sign", 1.0, "A + B ~ A - B", "A - B ~ B - A"),
    *_either("wrong-sign", 1.3, "A ~ -A"),
    *_either("transposed", 1.0, "M ~ M.T"),
    *_either("transposed", 0.9, "T ~ T.swapaxes(-1, -2)"),
    *_either("wrong-position", 2.2, "A ~ A[::-1]", "M ~ M[::-1, ::-1]", "T ~ T[..., ::-1, ::-1]"),
    *_either("wrong-axis", 2.0, "A.reshape(-1, A.shape[-1]) ~ A.reshape(B, C)"),
    *_either("batch-mean-vs-sum", 2.2, "A ~ A / N", "A ~ A * N"),
    *_either("wrong-local-derivative", 1.0, "A < B ~ A > B", "A < B ~ A <= B", "A > B ~ A >= B", "A <= B ~ A >= B"),
    *_either("wrong-local-derivative", 1.4, "A <= B ~ A > B", "A < B ~ A >= B"),
    *_either("wrong-evaluation-point", 1.0, "A // B ~ A % B"),
    *_either("wrong-evaluation-point", 1.5, "A[B] ~ A", "A[B] ~ A[B + 1]", "A[B] ~ A[B - 1]", "A[1:] ~ A[:-1]"),
    *_either("wrong-axis", 1.5, "A[B, C] ~ A[C, B]"),
    *_either("wrong-local-derivative", 1.3, "A * B ~ A / B", "A ** B ~ A * B"),
    *_either("wrong-local-derivative", 2.0, "A ~ 1 - A", "A ~ A ** 2", "A * B ~ A + B"),
    *_either("wrong-local-derivative", 1.4, "A * B * (1 - B) ~ A * (1 - B ** 2)", "B * (1 - B) ~ 1 - B ** 2"),
    *_either("missing-term", 2.4, "M ~ M - M.mean(axis=0)", *(
        f"{A} ~ {A} - {A}.mean(axis=-1, keepdims=True)" for A in "MT")),  # of what is centred
    *_either("constant-factor", 2.4, "A ~ A / np.sqrt(N)", "A ~ A * np.sqrt(N)", "A ~ A / N ** 2"),
    *_either("constant-factor", 2.0, "A ~ 2 * A", "A ~ A / 2"),
    *_either("constant-factor", 3.0, "A ~ 3 * A", "A ~ A / 3", "A ~ 4 * A", "A ~ A / 4"),
    *_either("wrong-local-derivative", 1.2, *(
        f"(A {inner} B) {outer} C ~ A {inner} (B {outer} C)"
        for inner in ("+", "-", "*", "/", "**") for outer in ("+", "-", "*", "/", "**")
        if (inner, outer) not in {("+", "+"), ("*", "*"), ("*", "/"), ("+", "-")}
    )),
    Row("extra-term", "missing-local-derivative", "A * U", "A", 1.5),
    Row("extra-term", "missing-local-derivative", "U * A", "A", 1.5),
    Row("extra-term", "missing-local-derivative", "A * U[:, None]", "A", 1.6),  # a mask, or a weight for each row
    Row("extra-term", "missing-local-derivative", "A / B", "A", 1.5),
    *(Row("extra-term", "missing-local-derivative", f"A * {slope}", "A", 1.6)
      for slope in ("(1 - U ** 2)", "U * (1 - U)", "(U > 0)")),
    Row("extra-term", "missing-local-derivative", "A * B * (1 - B)", "A * B", 1.7),  # half of a sigmoid's
    Row("extra-term", "missing-local-derivative", "B * (1 - B) * A", "B * A", 1.7),
    Row("extra-term", "missing-term", "A + U", "A", 1.5),
    Row("extra-term", "missing-term", "U + A", "A", 1.5),
    Row("extra-term", "missing-term", "A - U", "A", 1.5),
    *(Row("averaged-batch", "averaged-batch", f"np.outer(A.{one}(axis={axis}), B.{other}(axis={axis}))", right, 2.5)
      for axis, right in ((0, "A.T @ B"), (1, "A @ B.T"))
      for one, other in (("mean", "mean"), ("sum", "sum"), ("mean", "sum"))),
    *(Row("averaged-batch", "averaged-batch", f"A.{one}(axis=0) * B.{other}()", "A.T @ B", 2.5)
      for one, other in (("mean", "mean"), ("sum", "sum"), ("mean", "sum"))),
]  # fmt: skip
"""The rows that two texts say all of; `edit_candidates` has those that look at more."""

ROWS_OF_A_KIND: dict[str, list[Row]] = {}  # in both directions, by the class of the first text's node
for _row in [*ROWS, *(Row(row.makes, row.undoes, row.after, row.before, row.cost) for row in ROWS)]:
    ROWS_OF_A_KIND.setdefault(type(parsed(_row.before)).__name__, []).append(_row)
ANYTHING = ROWS_OF_A_KIND.pop("Name")  # rows whose first text is one part


@cache
def letters(text: str) -> frozenset[str]:
    """Return the letters in a row's text."""
    return frozenset(names_in(parsed(text)) - {"np"})


MOVING = {"reshape", "view", "swapaxes", "transpose", "permute", "moveaxis"}
_LIKE = {"zeros_like", "empty_like", "ones_like", "full_like"}
_AXES = {"axis", "axes", "dim", "keepdims"}
_CALLS = {
    "ones": "ignores-upstream", "ones_like": "ignores-upstream", "zeros": "zero-gradient", "zeros_like": "zero-gradient",
    "conj": "transposed", "astype": "dtype-or-overflow", "float32": "dtype-or-overflow", "float16": "dtype-or-overflow",
    "default_rng": "nondeterministic", "copy": "stale-or-mutated-state",
}  # fmt: skip
"""What a call gives away where it is put in or left out."""


def table_edits(place: Expression) -> Iterator[Edited]:
    """Yield what the table has for an expression."""
    if isinstance(place.parent, ast.Slice) and place.node is place.parent.step:
        return  # the step of a slice is -1 or none: another row leaves the slice out
    for row in ROWS_OF_A_KIND.get(type(place.node).__name__, []):
        yield from _by_row(place, row)
    if is_float(place.value) and not isinstance(place.node, ast.Constant):
        for row in ANYTHING:
            yield from _by_row(place, row)


def _by_row(place: Expression, row: Row) -> Iterator[Edited]:
    parts: dict[str, Any] = {}
    if not _matches(parsed(row.before), place.node, parts, place):
        return
    after = letters(row.after)
    free = after - parts.keys()
    if not free:
        undoes, makes = row.undoes, row.makes
        if left_out := [part for name, part in parts.items() if name not in after]:
            undoes, makes = _of_part(left_out[0], place, undoes, makes)
        cost = row.cost
        if len(row.before) == 1 and undoes == "transposed":
            whole = not isinstance(place.node, ast.Name | ast.Call) or not isinstance(place.parent, ast.BinOp)
            cost += TURNED_FORMULA * whole
        elif len(row.before) == 1:
            cost += OF_A_FORMULA * (not isinstance(place.node, ast.Name | ast.Call))
        elif undoes == "wrong-sign":
            cost += FROM_A_NUMBER * any(isinstance(part, ast.Constant) for part in parts.values())
        new = fill(row.after, **parts)
        if not any(there_and_back in ast.unparse(new) for there_and_back in ("- 1 + 1", "+ 1 - 1")):
            yield Edited(new, cost, undoes, makes)
    elif free == {"N"} and (row.after not in OF_A_WHOLE or place.is_whole):
        for k, size in enumerate(place.sizes):
            yield Edited(fill(row.after, **parts, N=size), row.cost + LIKE_IT * k, row.undoes, row.makes)
    elif free == {"U"} and row.after[0] == "A" and ("(" not in row.after or place.is_gradient(place.node)):
        for name, value in place.scope.items():
            if name != ast.unparse(place.node) and _broadcasts(
                _column(value) if "None" in row.after else value, place.value
            ):
                put_in = fill(name)
                makes, undoes = _of_part(put_in, place, row.makes, row.undoes)
                yield Edited(fill(row.after, **parts, U=put_in), row.cost + PUT_IN, undoes, makes)


def _of_part(part: ast.expr, place: Expression, undoes: str, makes: str) -> tuple[str, str]:
    """Return what leaving out a factor or a term undoes and makes: the upstream gradient, a size and a number say more."""
    if (undoes, makes) != ("extra-term", "missing-local-derivative"):
        return undoes, makes
    if names_in(part) & place.upstream:
        return undoes, "ignores-upstream"
    if any(map(is_size, ast.walk(part))):
        return "batch-mean-vs-sum", "batch-mean-vs-sum"
    if isinstance(part, ast.Constant | ast.UnaryOp) and not names_in(part):
        return "constant-factor", "constant-factor"
    return undoes, makes


def _matches(template: Any, node: Any, parts: dict[str, Any], place: Expression) -> bool:
    """Whether a tree is what a template stands for; its parts are put down by their letters."""
    if isinstance(template, list):
        return isinstance(node, list) and len(node) == len(template) and all(
            _matches(one, other, parts, place) for one, other in zip(template, node, strict=True))  # fmt: skip
    if not isinstance(template, ast.AST):
        return bool(template == node)
    if isinstance(template, ast.Name) and template.id == "np":
        return isinstance(node, ast.Name) and node.id == place.source.numpy
    if isinstance(template, ast.Name):
        if not isinstance(node, ast.AST):
            return False
        if template.id in parts:
            return ast.dump(parts[template.id]) == ast.dump(node)
        parts[template.id] = node
        axes = dimensions(place.of(node))
        return {"M": axes == 2, "T": axes > 2, "N": is_size(node)}.get(template.id, True)
    return type(template) is type(node) and all(
        _matches(getattr(template, field), getattr(node, field, None), parts, place)
        for field in template._fields
        if field != "ctx"
    )


def _column(value: Any) -> Any:
    """Return one number for each row as a column, and None for anything else."""
    return value[:, None] if dimensions(value) == 1 else None


def _broadcasts(value: Any, to: Any) -> bool:
    """Whether a value may be a factor or a term of another without changing its shape."""
    if dimensions(value) < 0 or dimensions(to) < 0:
        return False
    try:
        return np.broadcast_shapes(np.shape(value), np.shape(to)) == np.shape(to)
    except ValueError:
        return False


def in_context(place: Expression, edited: Edited) -> Edited:
    """Return an edit with the mistake that its surroundings name: an axis, an index, a call that came or went."""
    code = _around(place) or _by_calls(place, edited.new)
    if code is None and edited.undoes == "constant-factor" and not is_of_a_term(place):
        code = "wrong-local-derivative"
    return edited if code is None else edited._replace(undoes=code, makes=code)


def _around(place: Expression) -> str | None:
    """Name a mistake by the innermost node that says what the expression is for."""
    node: ast.AST = place.node
    while not isinstance(node, ast.stmt):
        holder = place.source.parents[id(node)][0]
        match holder:
            case ast.keyword() if holder.arg in _AXES:
                return "wrong-axis"
            case ast.Call() if node in holder.args and called(holder) in MOVING:
                return "wrong-axis"
            case ast.Call() if node in holder.args[1:] and called(holder) in ("sum", "mean"):
                return "wrong-axis"
            case ast.Call() if called(holder) in _LIKE and np.asarray(place.of(node)).dtype.kind in "iub":
                return "dtype-or-overflow"  # what is written into it is rounded
            case ast.Call() if called(holder) == "range":
                return "missing-term"
            case ast.BinOp(op=ast.Pow()) if node is holder.right:
                return "wrong-local-derivative"
            case ast.Subscript() if node is holder.slice:
                return "wrong-evaluation-point"
        node = holder
    return None


def is_of_a_term(place: Expression) -> bool:
    """Whether an expression is a factor of a whole gradient, or of a term of one, and not of something inside it."""
    node: ast.AST = place.node
    in_sum = False
    while not isinstance(holder := place.source.parents[id(node)][0], ast.stmt):
        if isinstance(holder, ast.BinOp):
            sums = isinstance(holder.op, ast.Add | ast.Sub)
            if not sums and in_sum:
                return False
            in_sum |= sums
        elif not isinstance(holder, ast.Dict | ast.Tuple | ast.keyword):
            return False
        node = holder
    return True


def _by_calls(place: Expression, new: ast.AST) -> str | None:
    if place.draws:
        return "nondeterministic"
    known = place.source.calls
    changed = calls_in(place.node, known) ^ calls_in(new, known)
    return next((_CALLS[name] for name in sorted(changed) if name in _CALLS), None)
