"""A script without functions as a forward and a backward: its lines up to the first update of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.names import Path, is_floating, is_loss_name, match, plain
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.user_code import adapt
from handgrad.checking.subject import CheckError

GIVEN = "__given__"  # the values of parameters, in the script's names
MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight

Statements = list[ast.stmt]


def adapt_script(file: File, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    """Return a script as the lines that compute its loss, and all lines up to the first update; it is run.

    The loss is found by its name where it is left out; a script that computes none is taken to train on half the squared
    difference that its backward begins with. ``gradients`` is from a gradient's name to its parameter's, for those whose
    names do not show it; a parameter without one is judged by how far the update moves it.
    """
    head, body, updates = _parts(ast.parse(file.read_text(encoding="utf-8")), file)
    code = _compiled(_reading_given([*head, *body], parameters := _parameters(updates, head)), file)
    step = _compiled(updates, file)

    def run(given: Mapping[str, Any]) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "__main__", "__file__": str(file), GIVEN: given}
        exec(code, names)
        return names

    names = run({})
    found = {name: value for name, value in names.items() if is_floating(value)}
    gradients = gradients or _gradients(found, parameters)
    loss = loss or next((name for name in ("loss", *found) if name in found and is_loss_name(name)), "")
    value = compile(loss or _half_squared_difference(body, file), f"{file} (its loss)", "eval")
    rate, moved = _rate(updates, names), set(parameters) - set(gradients.values())

    def forward(given: dict[str, Any]) -> tuple[list[Any], Any]:
        names = run(given)
        return [eval(value, names)], names

    def backward(_: dict[str, Any], names: dict[str, Any], upstream: list[Any]) -> dict[Path, Any]:
        given = {parameter: names[gradient] for gradient, parameter in gradients.items()}
        before = {name: np.array(names[name]) for name in moved}
        exec(step, names)
        given |= {name: (before[name] - names[name]) / rate for name in moved}
        return {(name,): np.asarray(gradient) * upstream[0] for name, gradient in given.items()}

    world = {name: found[name] for name in parameters}
    return adapt(world, forward, backward, file.name, {(name,): (name,) for name in parameters})


def _parts(tree: ast.Module, file: File) -> tuple[Statements, Statements, Statements]:
    """Return the statements before the training loop, those of a step before its first update, and its updates."""
    update = next((each for each in _all(tree.body) if _moved(each)), None)
    if update is None:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    k, outer = next((k, each) for k, each in enumerate(tree.body) if update in ast.walk(each))
    head = tree.body[:k]
    if not isinstance(outer, ast.For | ast.While) or outer.body[0] is update or update not in outer.body:
        return head, [], tree.body[k:]  # for parameter, gradient in zip(…): the loop is the update
    if isinstance(outer, ast.For):
        first = ast.parse(f"next(iter({ast.unparse(outer.iter)}))", mode="eval").body
        head = [*head, ast.Assign([outer.target], first)]
    place = outer.body.index(update)
    return head, outer.body[:place], [each for each in outer.body[place:] if _moved(each)]


def _all(body: Statements) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
            yield from _all(statement.body)


def _moved(statement: ast.stmt) -> str:
    """Return the name that a statement moves by something like a gradient, or ""."""
    match statement:
        case ast.AugAssign(target=ast.Name(name), op=ast.Sub() | ast.Add(), value=by):
            pass
        case ast.Assign(targets=[ast.Name(name)], value=ast.BinOp(left=ast.Name(left)) as by) if left == name:
            pass  # W = W - …
        case _:
            return ""
    moves = any(_is_gradient_name(each) or plain(each).endswith(MOVES) for each in _names([by]))
    return name if moves and not is_loss_name(name) and not _is_gradient_name(name) else ""


def _is_gradient_name(name: str) -> bool:
    low = plain(name)
    begins = low.startswith(("grad", "nabla")) or (low[:1] == "d" and len(low) > 1)
    return begins or low.endswith(("grad", "delta"))


def _names(nodes: list[Any], context: type = ast.expr_context) -> set[str]:
    """Return the names that some code reads and stores, or does one of these with."""
    found = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in found if isinstance(each.ctx, context)}


def _parameters(updates: Statements, head: Statements) -> list[str]:
    """Return the names that the updates move, in a zipped list too."""
    zipped = _names([loop.iter for loop in updates if isinstance(loop, ast.For)])
    moved = {*map(_moved, updates), *zipped} & _names(head, ast.Store)
    return sorted(name for name in moved if not _is_gradient_name(name))


def _reading_given(statements: Statements, parameters: list[str]) -> Statements:
    """Put the given value of each parameter behind the line that makes it."""
    result: Statements = []
    left = set(parameters)
    for statement in statements:
        result.append(statement)
        made = _names([statement], ast.Store) & left
        for name in sorted(made):
            result += ast.parse(f"{name} = {GIVEN}.get({name!r}, {name})").body
        left -= made
    return result


def _compiled(statements: Statements, file: File) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Module(statements, [])), str(file), "exec")


def _gradients(found: Mapping[str, Any], parameters: list[str]) -> dict[str, str]:
    """Return the parameter of each name that looks like a gradient."""
    ours = {(n,): found[n] for n in found if _is_gradient_name(n) and not plain(n).endswith(MOVES)}
    matches = match(ours, {(name,): found[name] for name in parameters})
    return {str(gradient[0]): str(parameter[0]) for parameter, gradient in matches.items()}


def _half_squared_difference(body: Statements, file: File) -> str:
    """Return the loss of the first two names that a backward subtracts."""
    for node in (node for each in body for node in ast.walk(each)):
        match node:
            case ast.BinOp(left=ast.Name(left), op=ast.Sub(), right=ast.Name(right)):
                return f"0.5 * (({left} - {right}) ** 2).sum()"
    raise CheckError(f"{file}: none of its names is a loss", fix="compute the loss: loss = …")


def _rate(updates: Statements, names: Mapping[str, Any]) -> float:
    """Return the number in front of the first update's gradient, or 1."""
    for node in (node for each in updates for node in ast.walk(each)):
        match node:
            case ast.BinOp(left=factor, op=ast.Mult()):
                factor = factor.operand if isinstance(factor, ast.UnaryOp) else factor
                value = getattr(factor, "value", names.get(getattr(factor, "id", "")))
                if isinstance(value, float | int):
                    return float(value)
    return 1.0
