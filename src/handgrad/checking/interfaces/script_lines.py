"""The lines of a script: which come before its training loop, which update parameters, which gradients they compute."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path as File

from handgrad.checking.interfaces.names import is_derivative_name, is_gradient_name, is_loss_name, plain
from handgrad.checking.interfaces.script_errors import Error, error_in
from handgrad.checking.interfaces.script_updates import (
    STEPS,
    Statements,
    every,
    flat,
    has_update,
    moved_by,
    names_in,
)
from handgrad.checking.subject import CheckError

ERRORS = "__errors__"  # in a script's names: the two sides of each error of a loop


def has_gradients(file: File) -> bool:
    """Whether a file computes a loss and gradients by hand outside its functions, updated or not."""
    return bool(leaves(flat(ast.parse(file.read_bytes()))))


def leaves(statements: Statements) -> list[str]:
    """Return the names whose gradient is computed by hand and that depend on no other such name; none without a loss."""
    made: dict[str, set[str]] = {}  # each name, and what the line that makes it reads
    for statement in every(statements):
        if isinstance(statement, ast.Assign):
            reads = names_in([statement.value], ast.Load)
            below = reads.union(*(made.get(name, set()) for name in reads))
            for name in names_in(list(statement.targets), ast.Store):
                made.setdefault(name, below)
    own = {name for name in made if f"d{name}" in made}
    has_loss = any(map(is_loss_name, made))
    return sorted(name for name in own if has_loss and not made[name] & own)


def parts_of_script(statements: Statements, file: File) -> tuple[Statements, Statements, Statements]:
    """Return the statements before the training loop, those of a step before its first update, and its updates."""
    update = next((each for each in every(statements) if moved_by(each)), None)
    if update is None:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    error = error_in(statements, {*map(moved_by, every(statements))})
    head: Statements = []
    body = statements
    while True:
        k, outer = next((k, each) for k, each in enumerate(body) if update in ast.walk(each))
        if outer is update or _is_of_one_step(outer, update, body[:k]):
            before, later = _without_updates(body[:k], error), _up_to_last_update(body[k:])
            return (before, [], later) if body is statements else (head, before, later)
        if _is_summed(outer, body[k + 1 :]):
            return head, _without_updates(body, error), body
        head = [*head, *body[:k]]
        if isinstance(outer, ast.For):  # the first time around
            first = ast.parse(f"next(iter({ast.unparse(outer.iter)}))", mode="eval").body
            head.append(ast.Assign([outer.target], first))
        body = outer.body if isinstance(outer, ast.For | ast.While | ast.If | ast.With) else []


def _is_of_one_step(loop: ast.stmt, update: ast.stmt, before: Statements) -> bool:
    """Whether a loop is an update: of parameter after parameter, or of entry after entry by an error known before it."""
    if not isinstance(loop, ast.For):
        return False
    known = {name for each in before if isinstance(each, ast.Assign) for name in names_in(list(each.targets))}
    known = {name for name in known if plain(name) not in STEPS and name != moved_by(update)}
    first: ast.stmt | None = loop
    while isinstance(first, ast.For):  # row after row
        first = next((each for each in first.body if not (_is_copy(each) or _adds_gradient(each))), None)
    is_known = bool(known & names_in([update], ast.Load))
    by_entry = first is update and is_known and error_in([update], {*map(moved_by, every(loop.body))}) is None
    return moved_by(update) in names_in([loop.target]) or by_entry


def _adds_gradient(statement: ast.stmt) -> bool:
    """Whether a statement sums up a gradient beside the updates: ``dh[j] += dz[k] * W[k][j]``."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
        return False
    return any(map(is_gradient_name, names_in([statement.target]))) and not moved_by(statement)


def _is_copy(statement: ast.stmt) -> bool:
    """Whether a statement only gives a name to an entry, or to a copy of it."""
    match statement:
        case ast.Assign([ast.Name()], ast.Call(ast.Attribute(value, "copy")) | value):
            return isinstance(value, ast.Name | ast.Subscript | ast.Attribute)
    return False


def _is_summed(loop: ast.stmt, later: Statements) -> bool:
    """Whether a loop updates something in each of its turns, and sums up the gradient of an update after it."""
    if not isinstance(loop, ast.For):
        return False
    sums = {ast.unparse(each.target) for each in every(loop.body) if isinstance(each, ast.AugAssign)}
    return any(
        moved_by(each) and names_in([each], ast.Load) & sums - {moved_by(each)} for each in every(later)
    )


def _without_updates(statements: Statements, error: Error | None) -> Statements:
    """Return statements that move nothing, and that collect each error: its two sides."""
    found: Statements = []
    for each in statements:
        if moved_by(each):
            continue
        if error is not None and each is error.statement:
            found += ast.parse(f"{ERRORS}.append(({error.output}, {error.target}))").body
        if isinstance(each, ast.For | ast.While | ast.If | ast.With):
            body = _without_updates(each.body, error) or [ast.Pass()]
            if (
                body != each.body
            ):  # else it stays the statement of the author's tree, by which a repair knows it
                each = copy.copy(each)
                each.body = body
        found.append(each)
    return found


def after_updates(statements: Statements) -> Statements:
    """Return what is computed after the updates, in the same step: the loss, where a training only reports it."""
    body, update = statements, next((each for each in every(statements) if moved_by(each)), None)
    while update is not None:
        outer = next(each for each in body if update in ast.walk(each))
        if outer is update or not isinstance(outer, ast.For | ast.While | ast.If | ast.With):
            last = max(k for k, each in enumerate(body) if has_update(each))
            return (
                [each for each in body[last + 1 :] if not isinstance(each, ast.Return)]
                if body is not statements
                else []
            )
        body = outer.body
    return []


def loss_calls(statements: Statements) -> Iterator[str]:
    """Yield what statements compute under the name of a loss, or by calling one."""
    for each in (node for statement in statements for node in ast.walk(statement)):
        match each:
            case ast.Assign([ast.Name(name)], value) if is_loss_name(name) and not isinstance(
                value, ast.List
            ):
                yield ast.unparse(value)
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if is_loss_name(
                name
            ) and not is_derivative_name(name):
                yield ast.unparse(each)


def _up_to_last_update(statements: Statements) -> Statements:
    """Return the updates, with what is computed between them: a gradient after the first update is of what it moved."""
    last = max(k for k, each in enumerate(statements) if has_update(each))
    computed = ast.Assign | ast.AugAssign | ast.AnnAssign
    return [each for each in statements[: last + 1] if has_update(each) or isinstance(each, computed)]


def computing(statements: Statements) -> Statements:
    """Return the statements without those that only show something, or have PyTorch compute gradients that nothing reads."""
    shows = {each.name for each in statements if isinstance(each, ast.FunctionDef) and _only_shows(each.body)}
    attributes = (each for one in statements for each in ast.walk(one) if isinstance(each, ast.Attribute))
    reads = {each.attr for each in attributes if isinstance(each.ctx, ast.Load)}
    asked = {"print", "retain_grad", "plot", *shows}

    def is_idle(statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(ast.Call(ast.Name(name))):
                return name in asked
            case ast.Expr(ast.Call(ast.Attribute(attr=name))):
                return name in asked or (name == "backward" and "grad" not in reads)
            case ast.For(body=body) | ast.If(body=body, orelse=[]):
                return all(map(is_idle, body))
        return isinstance(statement, ast.FunctionDef) and statement.name in shows

    left = [each for each in statements if not is_idle(each)]
    return left if len(left) == len(statements) else computing(left)


def _only_shows(body: Statements) -> bool:
    """Whether a function's body makes names of its own and prints, and nothing else."""
    for each in body:
        match each:
            case (
                ast.Assign(targets=[ast.Name()])
                | ast.Assert()
                | ast.Expr(ast.Constant() | ast.Call(ast.Name("print")))
            ):
                pass
            case _:
                return False
    return True
