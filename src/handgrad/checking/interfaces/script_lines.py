"""The lines of a script: which come before its training loop, which update parameters, which gradients they compute."""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Collection, Iterator
from pathlib import Path as File
from typing import Any, NamedTuple, TypeGuard

from handgrad.checking.interfaces.names import (
    RATES,
    is_derivative_name,
    is_gradient_name,
    is_loss_name,
    plain,
)
from handgrad.checking.subject import CheckError

MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight
STEPS = RATES - {"step"}  # what a gradient is multiplied with: a step may be counted
SLOTS = ("v", "m", "velocity", "momentum", "vel", "mom")  # of an optimiser, by a parameter's name

ERRORS = "__errors__"  # in a script's names: the two sides of each error of a loop
OWN = "a call"  # among what a name is made of: a function of the file's

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
            case ast.AugAssign(ast.Name(name), ast.Add() | ast.Sub(), by) if _has_product(
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


class Error(NamedTuple):
    """What a statement subtracts: an output, which depends on parameters, and its target, as they are written."""

    statement: ast.stmt
    output: str
    target: str


def error_in(statements: Statements, moved: Collection[str]) -> Error | None:
    """Return the first difference of what depends on the moved parameters, by any call too, and what does not.

    Within comprehensions it is looked for where there is none outside.
    """
    return _error_in(statements, moved) or _error_in(statements, moved, of_lists=True)


def _error_in(statements: Statements, moved: Collection[str], *, of_lists: bool = False) -> Error | None:
    made: dict[str, set[str]] = {}

    def depends(side: ast.expr) -> bool:
        reads = names_in([side])
        calls = (node.func for node in ast.walk(side) if isinstance(node, ast.Call))
        own = any(
            _is_attribute(each) or (isinstance(each, ast.Name) and not hasattr(builtins, each.id))
            for each in calls
        )
        return own or bool(reads.union(*(made.get(name, set()) for name in reads)) & {*moved, OWN})

    for statement in every(statements):
        parts = [statement.iter] if isinstance(statement, ast.For) else [statement]
        simple = not isinstance(statement, ast.While | ast.If | ast.With)
        own_step = ast.dump(_own_step(statement) or ast.Pass())
        change = _OfLists() if of_lists else _WithoutLists()
        whole = [change.visit(copy.deepcopy(part)) for part in parts]
        for node in (node for part in whole * simple for node in ast.walk(part)):
            match node:
                case ast.BinOp(left, ast.Sub(), right) if (
                    not isinstance(left, ast.Constant) and ast.dump(node) != own_step
                ):
                    one, other = depends(left), depends(right)
                    if one != other and names_in([left]) and names_in([right]):
                        sides = ast.unparse(left), ast.unparse(right)
                        return Error(statement, *(sides if one else sides[::-1]))
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.For):
            value = statement.iter if isinstance(statement, ast.For) else statement.value
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            reads = names_in([value], ast.Load) | ({OWN} if depends(value) else set())
            reads = reads.union(*(made.get(name, set()) for name in reads))
            for name in names_in(list(targets), ast.Store):
                made[name] = made.get(name, set()) | reads
    return None


class _WithoutLists(ast.NodeTransformer):
    """Leaves out comprehensions, whose variables have no value outside."""

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return ast.copy_location(ast.List([], ast.Load()), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return ast.copy_location(ast.Tuple([], ast.Load()), node)


class _OfLists(ast.NodeTransformer):
    """Writes comprehensions as what they do to whole lists: ``out - t`` of ``[o - each for o, each in zip(out, t)]``."""

    def __init__(self) -> None:
        self.lists: dict[str, ast.expr] = {}  # by the name of an entry
        self.indices: set[str] = set()

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        for each in node.generators:
            self._enter(each.target, each.iter)
        return self.visit(node.elt)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.lists.get(node.id, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Name) and node.slice.id in self.indices:
            return self.visit(node.value)
        return self.generic_visit(node)

    def _enter(self, target: ast.expr, values: ast.expr) -> None:
        match target, values:
            case ast.Name(name), ast.Call(ast.Name("range")):
                self.indices.add(name)
            case ast.Name(name), _:
                self.lists[name] = values
            case ast.Tuple([ast.Name(name), inner]), ast.Call(ast.Name("enumerate"), [entries]):
                self.indices.add(name)
                self._enter(inner, entries)
            case ast.Tuple(entries), ast.Call(ast.Name("zip"), lists):
                for one, many in zip(entries, lists, strict=False):
                    self._enter(one, many)


def _own_step(statement: ast.stmt) -> ast.expr | None:
    """Return the difference that an update itself is: ``W - lr * dW`` of ``W = W - lr * dW``."""
    return statement.value if isinstance(statement, ast.Assign) and moved_by(statement) else None


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
        moves or _is_scaled_product(by) or (isinstance(statement, ast.AugAssign) and _begins_with_gamma(by))
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
    return scaled and _has_product(by)


def _has_product(value: ast.expr) -> bool:
    """Whether a value is made by a matrix product."""
    products = {"dot", "matmul", "outer"}
    return any(
        isinstance(node, ast.MatMult) or (isinstance(node, ast.Attribute) and node.attr in products)
        for node in ast.walk(value)
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
