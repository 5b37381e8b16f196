"""A script without functions, or a function that trains, as a forward and a backward: its lines up to the first update."""

from __future__ import annotations

import ast
import copy
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.adapted_pair import adapt
from handgrad.checking.interfaces.implied_loss import best_fitting, implied_losses
from handgrad.checking.interfaces.names import (
    RATES,
    Path,
    definition_of,
    is_floating,
    is_loss_name,
    is_target,
    match,
    parameters_of,
    plain,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.tensors import in_float64, is_array, to_numpy
from handgrad.checking.subject import CheckError

GIVEN = "__given__"  # the values of parameters, in the script's names
MOVES = ("delta", "error", "update", "adjustment")  # what people add to a weight

Statements = list[ast.stmt]


def adapt_script(file: File, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    """Return a script as the lines that compute its loss, and all lines up to the first update; it is run.

    The loss is found by its name where it is left out; a script that computes none is taken to train on the common one
    that fits its gradients. ``gradients`` is from a gradient's name to its parameter's, for those whose
    names do not show it; a parameter without one is judged by how far the update moves it.
    """
    return _adapted(
        _Code(file, _flat, {"__name__": "__main__", "__file__": str(file)}), file.name, loss, gradients
    )


def adapt_training(function: FunctionType, given: Mapping[str, Any]) -> Pair:
    """Return a function that trains in a loop of its own as the lines up to its first update, as of a script."""
    defaults = {name: each.default for name, each in parameters_of(function).items() if name not in given}
    missing = next((name for name, value in defaults.items() if value is inspect.Parameter.empty), "")
    if missing:
        raise CheckError(
            f"{function.__name__} takes {missing!r}, and the inputs have no {missing!r}",
            fix=f'add it to the inputs: {{"{missing}": …}}',
        )
    code = _Code(
        File(function.__code__.co_filename),
        lambda tree: _body_of(function, tree),
        {**function.__globals__, **defaults, **given},
    )
    return _adapted(code, function.__name__)


def is_training(function: FunctionType) -> bool:
    """Whether a function makes parameters, computes their gradients and updates them, all in its own lines."""
    definition = definition_of(function)
    update = next((each for each in _all(definition.body) if _moved(each)), None) if definition else None
    if definition is None or update is None:
        return False
    try:
        head, body, updates = _parts(definition.body, File(function.__code__.co_filename))
    except CheckError:
        return False
    computed = (each for each in _all(definition.body) if isinstance(each, ast.Assign))
    own = [each for each in computed if any(isinstance(node, ast.BinOp) for node in ast.walk(each.value))]
    made = _names([target for each in own for target in each.targets], ast.Store)
    by_hand = any(_is_gradient_name(name) or plain(name).endswith(MOVES) for name in made)
    return by_hand and bool(_parameters(updates, [*head, *body]))


@dataclass(frozen=True)
class _Code:
    """Lines that train: their file, how they are found in its tree, and the names that they begin with."""

    file: File
    statements: Callable[[ast.Module], Statements]
    names: Mapping[str, Any]


def _body_of(function: FunctionType, tree: ast.Module) -> Statements:
    name, line = function.__name__, function.__code__.co_firstlineno
    definitions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    return min(definitions, key=lambda each: abs(each.lineno - line)).body


def _adapted(code: _Code, title: str, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    file = code.file
    try:
        tree = ast.parse(file.read_bytes())
    except OSError:
        raise CheckError(f"the source of {title} was not found", fix="write it into a file") from None
    is_updated = any(map(has_update, code.statements(tree)))

    def parts(tree: ast.Module) -> tuple[Statements, Statements, Statements]:
        return _parts(code.statements(tree), file) if is_updated else ([], code.statements(tree), [])

    head, body, updates = parts(tree)
    parameters = _parameters(updates, [*head, *body]) if is_updated else _leaves(body)
    if not parameters:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    if any(isinstance(each, ast.Return) for each in _all([*head, *body])):
        raise CheckError(f"{title} returns before its first update", fix="take that return out")

    def before_update(tree: ast.Module) -> Statements:
        head, body, _ = parts(tree)
        return _reading_given([*head, *body], parameters)

    main = _compiled(before_update(tree), file, code.names)
    step = _compiled(updates, file, code.names)
    main.__dict__["statements"] = before_update  # of a tree of the file, as it is or changed
    step.__dict__["statements"] = lambda tree: parts(tree)[2]
    data = {name: value for name, value in code.names.items() if is_array(value)}

    def run(given: Mapping[str, Any]) -> dict[str, Any]:
        names = {**main.__globals__, **copy.deepcopy(data), GIVEN: given}
        with in_float64():
            exec(main.__code__, names)
        return names

    try:
        names = run({})
    except CheckError:
        raise
    except Exception as error:
        line = next(_lines_of(error, file), 0)
        raise CheckError(
            f"{file}:{line}: {type(error).__name__}: {error}",
            fix="mend it first: gradients can be judged only when its lines run up to the first update",
        ) from error
    found = {name: value for name, value in names.items() if name not in data and is_floating(value)}
    gradients = gradients or _gradients(found, parameters)
    single = [
        name for name in found if np.size(to_numpy(found[name])) == 1
    ]  # `error = y - out` has an entry for each row
    loss = loss or next((name for name in ("loss", *single) if name in single and is_loss_name(name)), "")
    moves = [each for each in updates if has_update(each)]
    rate, moved = _rate(moves, names), set(parameters) - set(gradients.values())
    added = _added(moves)
    matched: dict[Path, Path] = {(parameter,): ("new", gradient) for gradient, parameter in gradients.items()}
    matched = {(name,): ("moved", name) for name in parameters} | matched

    def backward(_: dict[str, Any], names: dict[str, Any], upstream: list[Any]) -> dict[Path, Any]:
        found = {
            ("new", gradient): -names[gradient] if gradient in added else names[gradient]
            for gradient in gradients
        }
        before = {name: np.array(to_numpy(names[name])) for name in moved}
        exec(step.__code__, names)
        found |= {("moved", name): (before[name] - to_numpy(names[name])) / rate for name in moved}
        return {path: np.asarray(to_numpy(g)) * to_numpy(upstream[0]) for path, g in found.items()}

    def with_loss(value: Callable[[dict[str, Any]], Any]) -> Pair:
        def forward(given: dict[str, Any]) -> tuple[list[Any], Any]:
            names = run(given)
            return [value(names)], names

        world = {name: found[name] for name in parameters}
        return adapt(world, forward, backward, title, matched)

    if loss:
        compiled = compile(loss, f"{file} (its loss)", "eval")
        return with_loss(lambda names: eval(compiled, names))
    return _with_implied_loss(with_loss, *_subtracted(body, file))


def _lines_of(error: Exception, file: File) -> Iterator[int]:
    """Yield the lines of a file that an error passed, the innermost first."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    yield from (frame.lineno or 0 for frame in frames if frame.filename == str(file))


def _with_implied_loss(
    with_loss: Callable[[Callable[[dict[str, Any]], Any]], Pair], output: str, target: str
) -> Pair:
    """Return lines without a loss with the one that fits their gradients."""

    def pair_with(loss: Callable[..., Any]) -> Pair:
        return with_loss(lambda names: loss(output_=names[output], **{target: names[target]}))

    return best_fitting((formula, pair_with(loss)) for formula, loss in implied_losses(target))


def script_steps(file: File) -> tuple[dict[str, Any], Callable[[], object]] | None:
    """Return a script's names before its training loop, and what runs one step of it; None where it has no loop."""
    head, body, updates = _parts(_flat(ast.parse(file.read_bytes())), file)
    if not body:
        return None
    start = _compiled(head, file, {"__name__": "__main__", "__file__": str(file)})
    names = start.__globals__
    exec(start.__code__, names)
    step = _compiled([*body, *updates], file, {}).__code__
    return names, lambda: exec(step, names)


def has_update(code: ast.stmt | File) -> bool:
    """Whether a statement, or a file outside its functions, moves a parameter by a gradient."""
    statements = [code] if isinstance(code, ast.stmt) else _flat(ast.parse(code.read_bytes()))
    return any(_moved(each) for each in _all(statements))


def has_gradients(file: File) -> bool:
    """Whether a file computes a loss and gradients by hand outside its functions, updated or not."""
    return bool(_leaves(_flat(ast.parse(file.read_bytes()))))


def _flat(tree: ast.Module) -> Statements:
    """Return the statements of a file, with those under ``if __name__ == "__main__"`` among them."""
    flat: Statements = []
    for each in tree.body:
        flat += each.body if isinstance(each, ast.If) and "__main__" in ast.unparse(each.test) else [each]
    return flat


def _leaves(statements: Statements) -> list[str]:
    """Return the names whose gradient is computed by hand and that depend on no other such name; none without a loss."""
    made: dict[str, set[str]] = {}  # each name, and what the line that makes it reads
    for statement in _all(statements):
        if isinstance(statement, ast.Assign):
            reads = _names([statement.value], ast.Load)
            below = reads.union(*(made.get(name, set()) for name in reads))
            for name in _names(list(statement.targets), ast.Store):
                made.setdefault(name, below)
    own = {name for name in made if f"d{name}" in made}
    has_loss = any(map(is_loss_name, made))
    return sorted(name for name in own if has_loss and not made[name] & own)


def _parts(statements: Statements, file: File) -> tuple[Statements, Statements, Statements]:
    """Return the statements before the training loop, those of a step before its first update, and its updates."""
    update = next((each for each in _all(statements) if _moved(each)), None)
    if update is None:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    head: Statements = []
    body = statements
    while True:
        k, outer = next((k, each) for k, each in enumerate(body) if update in ast.walk(each))
        targets = _names([outer.target]) if isinstance(outer, ast.For) else set()
        if (
            outer is update or _moved(update) in targets
        ):  # for parameter, gradient in zip(…): the loop is the update
            later = _up_to_last_update(body[k:])
            return ([*head, *body[:k]], [], later) if body is statements else (head, body[:k], later)
        head = [*head, *body[:k]]
        if isinstance(outer, ast.For):  # the first time around
            first = ast.parse(f"next(iter({ast.unparse(outer.iter)}))", mode="eval").body
            head.append(ast.Assign([outer.target], first))
        body = outer.body if isinstance(outer, ast.For | ast.While | ast.If | ast.With) else []


def _up_to_last_update(statements: Statements) -> Statements:
    """Return the updates, with what is computed between them: a gradient after the first update is of what it moved."""
    last = max(k for k, each in enumerate(statements) if has_update(each))
    computed = ast.Assign | ast.AugAssign | ast.AnnAssign
    return [each for each in statements[: last + 1] if has_update(each) or isinstance(each, computed)]


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
        case ast.AugAssign(target=ast.Attribute(ast.Name(name), "data"), op=ast.Sub() | ast.Add(), value=by):
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
    lists = {
        each.targets[0].id: _names([each.value])
        for each in head
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
        if isinstance(each.value, ast.List | ast.Tuple)
    }
    zipped = zipped.union(*(lists.get(name, set()) for name in zipped)) - lists.keys()
    moved = {*map(_moved, updates), *zipped} & _names(head, ast.Store)
    slots = {
        name for name in moved if name[:1] in ("m", "v") and name[1:].removeprefix("_") in moved
    }  # an optimiser's
    return sorted(name for name in moved - slots if not _is_gradient_name(name))


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


def _compiled(statements: Statements, file: File, known: Mapping[str, Any]) -> FunctionType:
    """Return statements as a function, whose code can be exchanged; it holds their tree, and what they import."""
    imports: Statements = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
    names: dict[str, Any] = dict(known)
    exec(compile(ast.Module(imports, []), str(file), "exec"), names)
    others = [each for each in statements if each not in imports]
    tree = ast.fix_missing_locations(ast.Module(others, []))
    function = FunctionType(compile(tree, str(file), "exec"), names)
    function.__dict__["tree"] = tree
    return function


def _gradients(found: Mapping[str, Any], parameters: list[str]) -> dict[str, str]:
    """Return the parameter of each name that looks like a gradient."""
    ours = {(n,): found[n] for n in found if _is_gradient_name(n) and not plain(n).endswith(MOVES)}
    matches = match(ours, {(name,): found[name] for name in parameters})
    return {str(gradient[0]): str(parameter[0]) for parameter, gradient in matches.items()}


def _subtracted(body: Statements, file: File) -> tuple[str, str]:
    """Return the first two names that a backward subtracts: the output, and the target."""
    for node in (node for each in body for node in ast.walk(each)):
        match node:
            case ast.BinOp(left=ast.Name(left), op=ast.Sub(), right=ast.Name(right)):
                return (right, left) if is_target((left,)) else (left, right)
    raise CheckError(f"{file}: none of its names is a loss", fix="compute the loss: loss = …")


def _added(updates: Statements) -> set[str]:
    """Return the names that updates add, without a minus: what is called a gradient there is its opposite."""
    adding = (each for each in updates if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add))
    plus = [each.value for each in adding if not any(isinstance(n, ast.USub) for n in ast.walk(each.value))]
    return _names(list(plus))


def _rate(updates: Statements, names: Mapping[str, Any]) -> float:
    """Return the number that the first update multiplies its gradient with, or 1: a learning rate's name says most."""
    products = (node for each in updates for node in ast.walk(each) if isinstance(node, ast.BinOp))
    factors = [each for node in products if isinstance(node.op, ast.Mult) for each in (node.left, node.right)]
    factors = [each.operand if isinstance(each, ast.UnaryOp) else each for each in factors]
    by_name = [each.id for each in factors if isinstance(each, ast.Name) and not _is_gradient_name(each.id)]
    known = [names.get(name) for name in sorted(by_name, key=lambda name: plain(name) not in RATES)]
    literal = [each.value for each in factors if isinstance(each, ast.Constant)]
    numbers = (value for value in (*known, *literal) if isinstance(value, float | int))
    return float(next(numbers, 1.0))
