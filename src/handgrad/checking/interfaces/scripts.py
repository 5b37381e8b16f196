"""A script without functions as a forward and a backward: its lines up to the first update of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.matching import match
from handgrad.checking.interfaces.paths import Path, is_floating
from handgrad.checking.interfaces.roles import is_loss_name, plain
from handgrad.checking.interfaces.user_code import Adapted
from handgrad.checking.subject import CheckError

GIVEN = "__given__"  # the values of parameters, in the script's names
MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight


def adapt_script(file: File, loss: str = "", gradients: Mapping[str, str] | None = None) -> Adapted:
    """Return a script as the lines that compute its loss, and all lines up to the first update.

    Parameters
    ----------
    file
        The script; it is run.
    loss
        The name of its loss; found by its name where left out. A script that computes none is taken to train on half
        the squared difference that its backward begins with.
    gradients
        From a gradient's name to its parameter's, for those whose names do not show it. A parameter without one is
        judged by how far the update moves it.
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

    def backward(_: dict[str, Any], names: dict[str, Any], upstream: list[Any]) -> dict[Path, Any]:
        given = {parameter: names[gradient] for gradient, parameter in gradients.items()}
        before = {name: np.array(names[name]) for name in moved}
        exec(step, names)
        given |= {name: (before[name] - names[name]) / rate for name in moved}
        return {(name,): np.asarray(gradient) * upstream[0] for name, gradient in given.items()}

    world = {name: found[name] for name in parameters}
    matched: dict[Path, Path] = {(name,): (name,) for name in parameters}
    return Adapted(world, run, lambda names: [eval(value, names)], backward, file.name, matched)


Statements = list[ast.stmt]


def _parts(tree: ast.Module, file: File) -> tuple[Statements, Statements, Statements]:
    """Return the statements before the training loop, those of a step before its first update, and its updates."""
    update = next((each for each in _all(tree.body) if _moved(each)), None)
    if update is None:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    k, outer = next((k, each) for k, each in enumerate(tree.body) if update in ast.walk(each))
    if not isinstance(outer, ast.For | ast.While) or update not in outer.body:
        return tree.body[:k], [], tree.body[k:]
    head, place = tree.body[:k], outer.body.index(update)
    if isinstance(outer, ast.For):
        first = ast.parse(f"next(iter({ast.unparse(outer.iter)}))", mode="eval").body
        head = [*head, ast.Assign([outer.target], first)]
    if place == 0:  # for parameter, gradient in zip(…): the loop is the update
        return tree.body[:k], [], tree.body[k:]
    return head, outer.body[:place], [each for each in outer.body[place:] if _moved(each)]


def _all(body: Statements) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
            yield from _all(statement.body)


def _moved(statement: ast.stmt) -> str:
    """Return the name that a statement moves by something like a gradient, or ""."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Sub | ast.Add):
        target: ast.expr = statement.target
        by = statement.value
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):  # W = W - …
        target, by = statement.targets[0], statement.value
        if ast.unparse(target) != ast.unparse(statement.value.left):
            return ""
    else:
        return ""
    if not isinstance(target, ast.Name) or is_loss_name(target.id) or _is_gradient_name(target.id):
        return ""
    names = [node.id for node in ast.walk(by) if isinstance(node, ast.Name)]
    return target.id if any(_is_gradient_name(name) or plain(name).endswith(MOVES) for name in names) else ""


def _is_gradient_name(name: str) -> bool:
    low = plain(name)
    return (
        low.startswith(("grad", "nabla"))
        or low.endswith(("grad", "delta"))
        or (low[:1] == "d" and len(low) > 1)
    )


def _parameters(updates: Statements, head: Statements) -> list[str]:
    """Return the names that the updates move, in a zipped list too."""
    nodes = [node for each in head for node in ast.walk(each) if isinstance(node, ast.Name)]
    assigned = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    moved = {_moved(each) for each in updates}
    for loop in updates:
        if isinstance(loop, ast.For):
            moved |= {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
    return sorted(name for name in moved & assigned if not _is_gradient_name(name))


def _reading_given(statements: Statements, parameters: list[str]) -> Statements:
    """Put the given value of each parameter behind the line that makes it."""
    result: Statements = []
    left = set(parameters)
    for statement in statements:
        result.append(statement)
        nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        made = {node.id for node in nodes if isinstance(node.ctx, ast.Store)} & left
        for name in sorted(made):
            result += ast.parse(f"{name} = {GIVEN}.get({name!r}, {name})").body
        left -= made
    return result


def _compiled(statements: Statements, file: File) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Module(statements, [])), str(file), "exec")


def _gradients(found: Mapping[str, Any], parameters: list[str]) -> dict[str, str]:
    """Return the parameter of each name that looks like a gradient."""
    ours = {
        (name,): found[name] for name in found if _is_gradient_name(name) and not plain(name).endswith(MOVES)
    }
    matches = match(ours, {(name,): found[name] for name in parameters})
    return {str(gradient[0]): str(parameter[0]) for parameter, gradient in matches.items()}


def _half_squared_difference(body: Statements, file: File) -> str:
    """Return the loss of the first two names that a backward subtracts."""
    for node in (node for each in body for node in ast.walk(each)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
            if len(sides) == 2:
                return f"0.5 * (({sides[0]} - {sides[1]}) ** 2).sum()"
    raise CheckError(f"{file}: none of its names is a loss", fix="compute the loss: loss = …")


def _rate(updates: Statements, names: Mapping[str, Any]) -> float:
    """Return the number in front of the first update's gradient, or 1."""
    for node in (node for each in updates for node in ast.walk(each)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            factor = node.left.operand if isinstance(node.left, ast.UnaryOp) else node.left
            value = factor.value if isinstance(factor, ast.Constant) else names.get(getattr(factor, "id", ""))
            if isinstance(value, float | int):
                return float(value)
    return 1.0
