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
    is_gradient_name,
    is_loss_name,
    match,
    parameters_of,
    plain,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.script_lines import (
    MOVES,
    Statements,
    added_in,
    computing,
    every,
    flat,
    has_update,
    leaves,
    moved_by,
    names_in,
    parameters_in,
    parts_of_script,
    subtracted,
)
from handgrad.checking.interfaces.tensors import in_float64, is_array, to_numpy
from handgrad.checking.subject import CheckError

GIVEN = "__given__"  # the values of parameters, in the script's names


def adapt_script(file: File, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    """Return a script as the lines that compute its loss, and all lines up to the first update; it is run.

    The loss is found by its name where it is left out; a script that computes none is taken to train on the common one
    that fits its gradients. ``gradients`` is from a gradient's name to its parameter's, for those whose
    names do not show it; a parameter without one is judged by how far the update moves it.
    """
    return _adapted(
        _Code(file, flat, {"__name__": "__main__", "__file__": str(file)}), file.name, loss, gradients
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
    update = next((each for each in every(definition.body) if moved_by(each)), None) if definition else None
    if definition is None or update is None:
        return False
    try:
        head, body, updates = parts_of_script(definition.body, File(function.__code__.co_filename))
    except CheckError:
        return False
    computed = (each for each in every(definition.body) if isinstance(each, ast.Assign))
    own = [each for each in computed if any(isinstance(node, ast.BinOp) for node in ast.walk(each.value))]
    made = names_in([target for each in own for target in each.targets], ast.Store)
    by_hand = any(is_gradient_name(name) or plain(name).endswith(MOVES) for name in made)
    return by_hand and bool(parameters_in(updates, [*head, *body]))


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
        return parts_of_script(code.statements(tree), file) if is_updated else ([], code.statements(tree), [])

    head, body, updates = parts(tree)
    parameters = parameters_in(updates, [*head, *body]) if is_updated else leaves(body)
    if not parameters:
        raise CheckError(
            f"{file}: no line moves a parameter by a gradient",
            fix="write the update: W -= learning_rate * dW",
        )
    if any(isinstance(each, ast.Return) for each in every([*head, *body])):
        raise CheckError(f"{title} returns before its first update", fix="take that return out")

    def before_update(tree: ast.Module) -> Statements:
        head, body, _ = parts(tree)
        return _reading_given(computing([*head, *body]), parameters)

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
    added = added_in(moves)
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
    return _with_implied_loss(with_loss, *subtracted(body, file))


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
    head, body, updates = parts_of_script(flat(ast.parse(file.read_bytes())), file)
    if not body:
        return None
    start = _compiled(head, file, {"__name__": "__main__", "__file__": str(file)})
    names = start.__globals__
    exec(start.__code__, names)
    step = _compiled([*body, *updates], file, {}).__code__
    return names, lambda: exec(step, names)


def _reading_given(statements: Statements, parameters: list[str]) -> Statements:
    """Put the given value of each parameter behind the line that makes it."""
    result: Statements = []
    left = set(parameters)
    for statement in statements:
        result.append(statement)
        made = names_in([statement], ast.Store) & left
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
    ours = {(n,): found[n] for n in found if is_gradient_name(n) and not plain(n).endswith(MOVES)}
    matches = match(ours, {(name,): found[name] for name in parameters})
    return {str(gradient[0]): str(parameter[0]) for parameter, gradient in matches.items()}


def _rate(updates: Statements, names: Mapping[str, Any]) -> float:
    """Return the number that the first update multiplies its gradient with, or 1: a learning rate's name says most."""
    products = (node for each in updates for node in ast.walk(each) if isinstance(node, ast.BinOp))
    factors = [each for node in products if isinstance(node.op, ast.Mult) for each in (node.left, node.right)]
    factors = [each.operand if isinstance(each, ast.UnaryOp) else each for each in factors]
    by_name = [each.id for each in factors if isinstance(each, ast.Name) and not is_gradient_name(each.id)]
    known = [names.get(name) for name in sorted(by_name, key=lambda name: plain(name) not in RATES)]
    literal = [each.value for each in factors if isinstance(each, ast.Constant)]
    numbers = (value for value in (*known, *literal) if isinstance(value, float | int))
    return float(next(numbers, 1.0))
