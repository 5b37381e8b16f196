"""The lines of a script: which come before its training loop, which update parameters, which gradients they compute."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path as File
from typing import Any, TypeGuard

from handgrad.checking.interfaces.names import (
    is_derivative_name,
    is_gradient_name,
    is_loss_name,
    is_target,
    plain,
)
from handgrad.checking.subject import CheckError

MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight
STEPS = {"lr", "learningrate", "learnrate", "lrate", "eta", "alpha"}  # what a gradient is multiplied with
SLOTS = ("v", "m", "velocity", "momentum", "vel", "mom")  # of an optimiser, by a parameter's name

Statements = list[ast.stmt]


def has_update(code: ast.stmt | File) -> bool:
    """Whether a statement, or a file outside its functions, moves a parameter by a gradient."""
    statements = [code] if isinstance(code, ast.stmt) else flat(ast.parse(code.read_bytes()))
    return any(moved_by(each) for each in every(statements))


def has_gradients(file: File) -> bool:
    """Whether a file computes a loss and gradients by hand outside its functions, updated or not."""
    return bool(leaves(flat(ast.parse(file.read_bytes()))))


def flat(tree: ast.Module) -> Statements:
    """Return the statements of a file, with those under ``if __name__ == "__main__"`` among them."""
    found: Statements = []
    for each in tree.body:
        found += each.body if isinstance(each, ast.If) and "__main__" in ast.unparse(each.test) else [each]
    return found


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
    head: Statements = []
    body = statements
    while True:
        k, outer = next((k, each) for k, each in enumerate(body) if update in ast.walk(each))
        targets = names_in([outer.target]) if isinstance(outer, ast.For) else set()
        if (
            outer is update or moved_by(update) in targets
        ):  # for parameter, gradient in zip(…): the loop is the update
            later = _up_to_last_update(body[k:])
            return ([*head, *body[:k]], [], later) if body is statements else (head, body[:k], later)
        head = [*head, *body[:k]]
        if isinstance(outer, ast.For):  # the first time around
            first = ast.parse(f"next(iter({ast.unparse(outer.iter)}))", mode="eval").body
            head.append(ast.Assign([outer.target], first))
        body = outer.body if isinstance(outer, ast.For | ast.While | ast.If | ast.With) else []


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


def every(body: Statements) -> Iterator[ast.stmt]:
    """Yield statements, and those in their loops and conditions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.For | ast.While | ast.If | ast.With):
            yield from every(statement.body)


def moved_by(statement: ast.stmt) -> str:
    """Return the name that a statement moves by something like a gradient, or ""."""
    match statement:
        case ast.AugAssign(target=target, op=ast.Sub() | ast.Add(), value=by):
            pass
        case ast.Assign([target], ast.BinOp(left=left) as by) if ast.unparse(left) == ast.unparse(target):
            pass  # W = W - …
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(attr="add" | "subtract"), "at"), [target, _, by])):
            pass
        case _:
            return ""
    name = _place(target)
    read = names_in([by])
    moves = any(
        is_gradient_name(each) or plain(each).endswith(MOVES) or plain(each) in STEPS or _is_slot(each, name)
        for each in read
    )
    moves = moves or _is_scaled_product(by)
    last = name.rpartition(".")[2]
    is_other = is_loss_name(last) or is_gradient_name(last) or plain(last) in STEPS
    return name if moves and not is_other and not _reads_autograd(by) else ""


def _is_scaled_product(by: ast.expr) -> bool:
    """Whether a value is a matrix product times a single name or number: a gradient times a rate, in any language."""
    scaled, left = False, [by]
    for each in left:  # which grows
        match each:
            case ast.BinOp(one, ast.Mult() | ast.Div(), other):
                scaled = scaled or any(
                    isinstance(side, ast.Name | ast.Attribute | ast.Constant) for side in (one, other)
                )
                left += [one, other]
            case ast.BinOp(one, ast.MatMult(), other):
                left += [one, other]
    products = {"dot", "matmul", "outer"}
    return scaled and any(
        isinstance(node, ast.MatMult) or (isinstance(node, ast.Attribute) and node.attr in products)
        for node in ast.walk(by)
    )


def _place(target: ast.expr) -> str:
    """Return what an assignment changes: a name, also its entries and its ``data``, or an attribute of the object."""
    match target:
        case ast.Subscript(value=container):
            return _place(container)
        case ast.Attribute(ast.Name("self")):
            return ast.unparse(target)
        case ast.Attribute(ast.Name(name), "data") | ast.Name(name):
            return name
    return ""


def _reads_autograd(by: ast.expr) -> bool:
    """Whether an update reads a gradient that PyTorch computed."""
    return any(isinstance(each, ast.Attribute) and each.attr == "grad" for each in ast.walk(by))


def _is_slot(name: str, parameter: str) -> bool:
    """Whether a name is an optimiser's slot of a parameter: ``vW``, ``W_velocity``."""
    return any(plain(name) in (f"{slot}{plain(parameter)}", f"{plain(parameter)}{slot}") for slot in SLOTS)


def names_in(nodes: list[Any], context: type = ast.expr_context) -> set[str]:
    """Return the names and the object's attributes that some code reads and stores, or does one of these with."""
    every = (each for node in nodes for each in ast.walk(node))
    found = (each for each in every if isinstance(each, ast.Name) or _is_attribute(each))
    return {ast.unparse(each) for each in found if isinstance(each.ctx, context)}


def _is_attribute(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def declared_in(statements: Statements) -> set[str]:
    """Return the names of the module that statements declare as global."""
    return {name for each in statements if isinstance(each, ast.Global) for name in each.names}


def parameters_in(updates: Statements, head: Statements, given: Collection[str] = ()) -> list[str]:
    """Return the names that the updates move, in a zipped list too: of what is made before, or ``given``."""
    zipped = names_in([loop.iter for loop in updates if isinstance(loop, ast.For)])
    lists = {
        each.targets[0].id: names_in([each.value])
        for each in head
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        if isinstance(each.value, ast.List | ast.Tuple)
    }
    zipped = zipped.union(*(lists.get(name, set()) for name in zipped)) - lists.keys()
    made = names_in(head, ast.Store) | declared_in(head) | {*given}
    moved = {*map(moved_by, every(updates)), *zipped}
    moved = {each for each in moved if each in made or each.startswith("self.")}
    slots = {
        name for name in moved if name[:1] in ("m", "v") and name[1:].removeprefix("_") in moved
    }  # an optimiser's
    return sorted(name for name in moved - slots if not is_gradient_name(name))


def subtracted(body: Statements, file: File) -> tuple[str, str]:
    """Return the first two names that a backward subtracts: the output, and the target."""
    for node in (node for each in body for node in ast.walk(each)):
        match node:
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if _place(left) and _place(right):
                names = ast.unparse(left), ast.unparse(right)
                return names if not is_target((names[0],)) else names[::-1]
    raise CheckError(f"{file}: none of its names is a loss", fix="compute the loss: loss = …")


def added_in(updates: Statements) -> set[str]:
    """Return the names that updates add, without a minus: what is called a gradient there is its opposite."""
    adding = (each for each in updates if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add))
    plus = [each.value for each in adding if not any(isinstance(n, ast.USub) for n in ast.walk(each.value))]
    return names_in(list(plus))
