"""The statements of a script that update parameters: what they move, and what they multiply and divide gradients with."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path as File
from typing import Any, TypeGuard

from handgrad.checking.interfaces.names import RATES, is_gradient_name, is_loss_name, plain

MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight
STEPS = RATES - {"step"}  # what a gradient is multiplied with: a step may be counted
SLOTS = ("v", "m", "velocity", "momentum", "vel", "mom")  # of an optimiser, by a parameter's name

Statements = list[ast.stmt]


def has_update(code: ast.stmt | File) -> bool:
    """Whether a statement, or a file outside its functions, moves a parameter by a gradient."""
    statements = [code] if isinstance(code, ast.stmt) else flat(ast.parse(code.read_bytes()))
    return any(moved_by(each) for each in every(statements))


def line_of_update(file: File) -> int:
    """Return the line outside functions that first moves a parameter, 0 without one.

    Also one of an object, ``layer.W -= …``, by a function, ``w = update(w, dw)``, or by a product, ``w += x.T @ step``.
    """
    for each in every(flat(ast.parse(file.read_bytes()))):
        match each:
            case ast.AugAssign(target=ast.Attribute(), op=ast.Sub()):
                return each.lineno
            case ast.AugAssign(ast.Name(name), ast.Add() | ast.Sub(), by) if has_product(
                by
            ) and not is_gradient_name(name):
                return each.lineno
            case ast.Assign([ast.Name(name)], ast.Call(args=[*given])) if name in map(
                ast.unparse, given
            ) and any(is_gradient_name(ast.unparse(one)) for one in given):
                return each.lineno
            case _ if moved_by(each):
                return each.lineno
    return 0


def flat(tree: ast.Module) -> Statements:
    """Return the statements of a file, with those under ``if __name__ == "__main__"`` among them."""
    found: Statements = []
    for each in tree.body:
        found += each.body if is_main_guard(each) else [each]
    return found


def is_main_guard(statement: ast.stmt) -> TypeGuard[ast.If]:
    """Whether a statement is ``if __name__ == "__main__"``."""
    return isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test)


def penalty_factors(updates: Statements) -> dict[str, str]:
    """Return what the square of each parameter is multiplied with: ``reg`` of ``W -= lr * (dW + reg * W)``, by its name.

    Where one update has such a factor, others that read it are taken to have it too, whatever they multiply it with.
    """
    moves = [each for each in every(updates) if moved_by(each)]
    found: dict[str, str] = {}
    for each in moves:
        target = each.target if isinstance(each, ast.AugAssign) else getattr(each, "targets", [None])[0]
        for node in ast.walk(getattr(each, "value", each)):
            if target is not None and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                factors = _factors(node)
                rest = [text for text in factors if text != ast.unparse(target) and plain(text) not in STEPS]
                single = all(re.fullmatch(r"[\w.]+", text) for text in rest)
                if len(factors) > len(rest) > 0 and ast.unparse(target) in factors and single:
                    found.setdefault(moved_by(each), " * ".join(rest))
    for each in moves:
        reads = names_in([getattr(each, "value", each)], ast.Load)
        shared = next((factor for factor in found.values() if factor in reads), "")
        if shared:
            found.setdefault(moved_by(each), shared)
    return found


def _factors(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [ast.unparse(node)]


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
        case ast.Assign([target], ast.BinOp(left, ast.Sub() | ast.Add(), by)) if ast.unparse(
            left
        ) == ast.unparse(target):
            pass  # W = W - …
        case ast.Assign([target], ast.BinOp(by, ast.Add(), right)) if ast.unparse(right) == ast.unparse(
            target
        ):
            pass  # W = -… + W
        case ast.Expr(ast.Call(ast.Attribute(ast.Attribute(attr="add" | "subtract"), "at"), [target, _, by])):
            pass
        case _:
            return ""
    name = _place(target)
    read = names_in([by])
    moves = any(
        is_gradient_name(each)
        or plain(each).endswith(MOVES)
        or plain(each) in STEPS
        or _is_slot(each, name)
        or plain(each) == f"g{plain(name)}"
        for each in read
    )
    moves = (
        moves
        or _is_scaled_product(by)
        or _is_scaled_reduction(statement)
        or (isinstance(statement, ast.AugAssign) and _begins_with_gamma(by))
    )
    last = name.rpartition(".")[2]
    is_loss = is_loss_name(last) and f"d{plain(last)}" not in map(plain, read)  # E of E -= rate * dE is none
    is_other = is_loss or is_gradient_name(last) or plain(last) in STEPS or _is_square(by)
    return name if moves and not is_other and not _reads_autograd(by) else ""


def _is_square(by: ast.expr) -> bool:
    """Whether a value is made of a gradient's square, as a norm or an optimiser's slot is: ``norm += np.sum(dW ** 2)``."""
    powers = [
        node.left for node in ast.walk(by) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    ]
    return any(map(is_gradient_name, names_in(list(powers))))


def _begins_with_gamma(by: ast.expr) -> bool:
    """Whether a value is an object's γ times something, as recommenders call their learning rate."""
    return isinstance(by, ast.BinOp) and isinstance(by.op, ast.Mult) and ast.unparse(by.left) == "self.gamma"


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
    return scaled and has_product(by)


def _is_scaled_reduction(statement: ast.stmt) -> bool:
    """Whether a statement subtracts a number times a sum or a mean: ``b -= 0.1 * 2 * error.mean()``."""
    match statement:
        case ast.AugAssign(op=ast.Sub(), value=ast.BinOp(op=ast.Mult() | ast.Div()) as by):
            nodes = [*ast.walk(by)]
            scaled = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in nodes)
            return scaled and any(
                isinstance(each, ast.Call) and getattr(each.func, "attr", "") in ("sum", "mean")
                for each in nodes
            )
    return False


def has_product(code: ast.AST, *others: str) -> bool:
    """Whether some code makes something by a matrix product, or by one of ``others``, functions by their names."""
    calls = {"dot", "matmul", "outer", *others}
    nodes = ast.walk(code)
    return any(isinstance(each, ast.MatMult) or getattr(each, "attr", "") in calls for each in nodes)


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
    found = (each for each in every if isinstance(each, ast.Name) or is_attribute(each))
    return {ast.unparse(each) for each in found if isinstance(each.ctx, context)}


def is_attribute(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether some code is an attribute of the object that a method belongs to."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def declared_in(statements: Statements) -> set[str]:
    """Return the names of the module that statements declare as global."""
    return {name for each in statements if isinstance(each, ast.Global) for name in each.names}


def parameters_in(updates: Statements, head: Statements, given: Collection[str] = ()) -> list[str]:
    """Return the names that the updates move, in a zipped list too: of what is made before, or ``given``."""
    loops = [each for each in updates if isinstance(each, ast.For)]
    zipped = names_in([
        each.iter for each in loops if {*map(moved_by, every(each.body))} & names_in([each.target])
    ])  # fmt: skip
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


def changed_in(updates: Statements) -> list[str]:
    """Return the names, and the object's attributes, that statements add to or subtract from."""
    moves = (each for each in every(updates) if isinstance(each, ast.AugAssign))
    places = (_place(each.target) for each in moves if isinstance(each.op, ast.Add | ast.Sub))
    return [*dict.fromkeys(places)]


def divided_in(updates: Statements) -> set[str]:
    """Return the names in updates that divide: ``W -= rate * dW / n``, ``W -= rate * (1 / n) * dW``."""
    moves = [each for each in every(updates) if moved_by(each)]
    return names_in([each for each in moves if any(isinstance(node, ast.Div) for node in ast.walk(each))])


def added_in(updates: Statements) -> set[str]:
    """Return the names that updates add, without a minus: what is called a gradient there is its opposite."""
    moves = (each for each in every(updates) if moved_by(each) and isinstance(each, ast.AugAssign))
    adding = (each for each in moves if isinstance(each.op, ast.Add))
    plus = [each.value for each in adding if not any(isinstance(n, ast.USub) for n in ast.walk(each.value))]
    return names_in(list(plus))
