"""A script without functions, or a function that trains, as a forward and a backward: its lines up to the first update."""

from __future__ import annotations

import ast
import inspect
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path as File
from types import CodeType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.adapted_pair import adapt
from handgrad.checking.interfaces.calling import Function
from handgrad.checking.interfaces.implied_loss import best_fitting, implied_losses, most_agreeing
from handgrad.checking.interfaces.names import (
    RATES,
    Path,
    bare_name,
    is_derivative_name,
    is_floating,
    is_gradient_name,
    is_loss_name,
    is_target,
    match,
    names_of_array,
    plain,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.script_errors import Error, error_in
from handgrad.checking.interfaces.script_lines import ERRORS, after_updates, loss_calls, parts_of_script
from handgrad.checking.interfaces.script_training import (
    Code,
    Training,
    body_of,
    places_in,
    training_of,
    value_at,
)
from handgrad.checking.interfaces.script_updates import (
    MOVES,
    Statements,
    added_in,
    changed_in,
    divided_in,
    every,
    flat,
    has_product,
    has_update,
    moved_by,
    names_in,
    parameters_in,
    penalty_factors,
)
from handgrad.checking.interfaces.signatures import definition_of, parameters_of
from handgrad.checking.interfaces.tensors import as_floats, is_array_like, numbers_in, to_numpy
from handgrad.checking.subject import CheckError


def adapt_script(file: File, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    """Return a script as the lines that compute its loss, and all lines up to the first update; it is run.

    The loss is found by its name where it is left out; a script that computes none is taken to train on the common one
    that fits its gradients. ``gradients`` is from a gradient's name to its parameter's, for those whose
    names do not show it; a parameter without one is judged by how far the update moves it.
    """
    return _adapted(
        Code(file, flat, {"__name__": "__main__", "__file__": str(file)}), file.name, loss, gradients
    )


def adapt_training(function: Function, given: Mapping[str, Any]) -> Pair:
    """Return a function that trains in a loop of its own as the lines up to its first update, as of a script."""
    defaults = {name: each.default for name, each in parameters_of(function).items() if name not in given}
    missing = next((name for name, value in defaults.items() if value is inspect.Parameter.empty), "")
    if missing:
        raise CheckError(
            f"{function.__name__} takes {missing!r}, and the inputs have no {missing!r}",
            fix=f'add it to the inputs: {{"{missing}": …}}',
        )
    code = Code(
        File(function.__code__.co_filename),
        lambda tree: body_of(function, tree),
        {**function.__globals__, **defaults, **given},
        parameters_of(function),
    )
    return _adapted(code, function.__name__)


def is_training(function: Function) -> bool:
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
    added = [each.target for each in every(definition.body) if isinstance(each, ast.AugAssign)]
    made |= names_in([target for target in added if isinstance(target, ast.Subscript)])  # dW[i][j] += …
    by_hand = any(is_gradient_name(name) or plain(name).endswith(MOVES) for name in made) or _computes(update)
    given = parameters_of(function)
    moved = parameters_in(updates, [*head, *body], {*given, *_global_arrays(function)})
    has_loss = any(is_target((name,)) for name in given) or any(map(is_loss_name, made))
    has_error = error_in([*head, *body, *updates], moved) is not None
    return (by_hand or has_error) and bool({*moved} - given.keys() or (moved and (has_loss or has_error)))


def _global_arrays(function: Function) -> set[str]:
    """Return the module's arrays, as names that a function may move in place."""
    return {name for name in function.__code__.co_names if is_array_like(function.__globals__.get(name))}


def _computes(update: ast.stmt) -> bool:
    """Whether an update computes its gradient itself: ``w -= lr * X.T @ (p - y)``."""
    return has_product(update, "sum", "mean")


def makes_state(method: Function, forward: Function | None) -> bool:
    """Whether a method that trains also makes what it trains, or what forward reads: it is run from its beginning."""
    definition, reader = definition_of(method), definition_of(forward) if forward else None
    assert definition is not None
    head, body, updates = parts_of_script(definition.body, File(method.__code__.co_filename))
    before = [*head, *body]
    needed = names_in([reader], ast.Load) - names_in([reader], ast.Store) if reader else set()
    read = {name for name in needed if name.startswith("self.")}
    made = {
        name
        for each in every(before)
        if isinstance(each, ast.Assign)
        for name in names_in(list(each.targets), ast.Store) - names_in([each.value], ast.Load)
    }
    return bool(made & {*parameters_in(updates, before), *read})


def _adapted(code: Code, title: str, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    training = training_of(code, title)
    head, body, updates = training.parts
    with _located(
        code.file, "mend it first: gradients can be judged only when its lines run up to the first update"
    ):
        names = training.run({})
    found = _floating(names, training)
    parameters = [name for name in training.parameters if name in found]
    loss = loss or _loss_name(found, [*head, *body])
    read = partial(_read, training, title, names, found, loss)
    if gradients:
        return read(gradients)
    multiplied = names_in([each for each in every(updates) if _computes(each)], ast.Load)
    named, divided = _gradients(found, parameters, multiplied), divided_in(updates)
    steps = {gradient: parameter for gradient, parameter in named.items() if gradient not in divided}
    # an update that divides may average what is the gradient of a sum, or make the gradient of a mean
    chosen = most_agreeing([partial(read, named), partial(read, steps)]) if steps != named else None
    return chosen or read(named)


def _read(
    training: Training,
    title: str,
    names: Mapping[str, Any],
    found: Mapping[str, Any],
    loss: str,
    gradients: Mapping[str, str],
) -> Pair:
    """Return a training whose gradients are those by name, and of its other parameters how far they move."""
    code, (head, body, updates) = training.code, training.parts
    parameters = [name for name in training.parameters if name in found]
    moved = set(parameters) - set(gradients.values())
    backward = _stepping(training, gradients, moved, names)
    matched: dict[Path, Path] = {(name,): ("moved", name) for name in parameters}
    matched |= {(parameter,): ("new", gradient) for gradient, parameter in gradients.items()}
    with _located(code.file, "mend this line: it runs no update"):
        first = backward({}, training.run({}), [1.0])

    def with_loss(value: Callable[[dict[str, Any]], Any]) -> Pair:
        def forward(given: dict[str, Any]) -> tuple[list[Any], Any]:
            names = training.run(given)
            return [value(names)], names

        world = {name: code.names[name] for name in code.given if is_array_like(code.names[name])}
        world |= {name: found[name] for name in parameters}
        pair = adapt(world, forward, backward, title, matched)
        limits = (*_other_moves(updates, gradients), *_unjudged(training, found, {*parameters, *gradients}))
        return replace(pair, limits=(*pair.limits, *limits))

    if loss:
        compiled = compile(loss, f"{code.file} (its loss)", "eval")
        return with_loss(lambda names: eval(compiled, names))
    if later := _later_loss(after_updates(training.statements), names, code.file):
        return with_loss(later)
    difference = error_in([*head, *body, *updates], parameters)
    if difference is None:
        raise CheckError(
            f"{code.file}: none of its names is a loss, and no line subtracts a target from an output",
            given=f"the update moves {', '.join(parameters)}",
            fix="compute the loss: loss = …",
        )
    penalties = {
        name: (factor, first["moved", name] != 0)
        for name, factor in penalty_factors(updates).items()
        if name in moved
    }
    return _with_implied_loss(with_loss, difference, penalties)


def _other_moves(updates: Statements, gradients: Mapping[str, str]) -> list[str]:
    """Return that parameters move by other names than their gradients', such as a momentum's: these lines are not judged."""
    found = [
        ast.unparse(each)
        for each in every(updates)
        if moved_by(each) in gradients.values() and not names_in([each], ast.Load) & gradients.keys()
    ]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return [f"the update was not judged, only its gradients: {found[0]}{more}"] if found else []


def _unjudged(training: Training, found: Mapping[str, Any], judged: Collection[str]) -> list[str]:
    """Return that an update moves what forward may read, and that is not judged: its rate has an unusual name."""
    head, body, updates = training.parts
    read = names_in([*head, *body], ast.Load)
    places = (each for each in changed_in(updates) if each in read or each.startswith("self."))
    moved = [each for each in places if each in found and each not in judged]
    moved = [each for each in moved if not is_gradient_name(each) and not is_loss_name(each)]
    return [f"the update of {', '.join(moved)} was not judged"] if moved else []


def _floating(names: Mapping[str, Any], training: Training) -> dict[str, Any]:
    """Return what the lines make or move of floating point; a parameter that starts as a whole number is a float."""
    known = training.data.keys() - set(training.parameters)
    found = {name: value for name, value in places_in(names) if name not in known and is_floating(value)}
    whole = {name: value_at(names, name) for name in training.parameters if name not in found}
    found |= {name: float(value) for name, value in whole.items() if type(value) is int}
    return found | {name: as_floats(value) for name, value in whole.items() if numbers_in(value)}


def _loss_name(found: Mapping[str, Any], statements: Statements) -> str:
    """Return the name of the loss that the statements compute, or none: one number, as an error is not, and no largest."""
    largest = {*_largest(statements)}
    single = [name for name in found if name.partition("[")[0] not in largest]
    single = [name for name in single if np.size(to_numpy(found[name])) == 1]
    called = _made_by_losses(statements)  # l = squared_loss(output, y)
    losses = (name for name in ("loss", *single) if name in single and (is_loss_name(name) or name in called))
    return next(losses, "")


def _largest(statements: Statements) -> Iterator[str]:
    """Yield the names of largest values, which are watched: ``error = abs(out - y).max()``, ``errors.append(max(e))``."""
    for each in every(statements):
        match each:
            case ast.Assign(
                [ast.Name(name)], ast.Call(ast.Name("max") | ast.Attribute(attr="max"))
            ) | ast.Expr(
                ast.Call(
                    ast.Attribute(ast.Name(name), "append"),
                    [ast.Call(ast.Name("max") | ast.Attribute(attr="max"))],
                )
            ):
                yield name


def _stepping(
    training: Training, gradients: Collection[str], moved: Collection[str], names: Mapping[str, Any]
) -> Callable[[dict[str, Any], dict[str, Any], list[Any]], dict[Path, Any]]:
    """Return what runs the update: the gradients by name are as computed, those of ``moved`` what it moves, by the rate."""
    moves = [each for each in training.parts[2] if has_update(each)]
    rate, added = _rate(moves, names), added_in(moves)

    def backward(_: dict[str, Any], names: dict[str, Any], upstream: list[Any]) -> dict[Path, Any]:
        found: dict[Path, Any] = {
            ("new", gradient): to_numpy(value_at(names, gradient)) * (-1 if gradient in added else 1)
            for gradient in gradients
        }
        before = {name: np.array(to_numpy(value_at(names, name))) for name in moved}
        exec(training.step.__code__, names)
        found |= {("moved", name): (before[name] - to_numpy(value_at(names, name))) / rate for name in moved}
        return {path: np.asarray(to_numpy(g)) * to_numpy(upstream[0]) for path, g in found.items()}

    return backward


@contextmanager
def _located(file: File, fix: str) -> Iterator[None]:
    """Raise what the author's lines raise as a CheckError that names the line."""
    try:
        yield
    except CheckError:
        raise
    except Exception as error:
        line = next(_lines_of(error, file), 0)
        raise CheckError(f"{file}:{line}: {type(error).__name__}: {error}", fix=fix) from error


def _later_loss(
    statements: Statements, names: Mapping[str, Any], file: File
) -> Callable[[dict[str, Any]], Any] | None:
    """Return what computes, from the names before the updates, the loss that a step computes after them."""
    assigned: Statements = [each for each in statements if isinstance(each, ast.Assign)]
    lines = compile(ast.fix_missing_locations(ast.Module(assigned, [])), str(file), "exec")
    for text in loss_calls(statements):
        value = compile(text, f"{file} (its loss)", "eval")

        def loss(names: dict[str, Any], value: CodeType = value) -> Any:
            own = {**names}
            exec(lines, own)
            return eval(value, own)

        with suppress(Exception):  # it is computed from what only later steps have
            if np.size(found := to_numpy(loss(dict(names)))) == 1 and is_floating(found):
                return loss
    return None


def _made_by_losses(statements: Statements) -> set[str]:
    """Return the names of what functions return that are called losses."""
    found = set()
    for each in every(statements):
        match each:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name(called))):
                found |= {name} if is_loss_name(called) and not is_derivative_name(called) else set()
    return found


def _lines_of(error: Exception, file: File) -> Iterator[int]:
    """Yield the lines of a file that an error passed, the innermost first."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    yield from (frame.lineno or 0 for frame in frames if frame.filename == str(file))


def _with_implied_loss(
    with_loss: Callable[[Callable[[dict[str, Any]], Any]], Pair],
    error: Error,
    penalties: Mapping[str, tuple[str, Any]],
) -> Pair:
    """Return lines without a loss with the one that fits their gradients.

    ``penalties`` are each parameter's factor, and which of its entries move.
    """
    output, target = (compile(each, "the error", "eval") for each in (error.output, error.target))

    def penalty(names: dict[str, Any]) -> Any:
        squares = (
            eval(factor, names) * np.sum(np.where(moves, value_at(names, name), 0.0) ** 2)
            for name, (factor, moves) in penalties.items()
        )
        return sum(squares)

    def pair_with(loss: Callable[..., Any], share: float, averaged: bool) -> Pair:
        def value(names: dict[str, Any]) -> Any:
            sides = names[ERRORS] or [(eval(output, names), eval(target, names))]
            total = sum(loss(output_=one, target_=other) for one, other in sides) / (
                len(sides) if averaged else 1
            )
            return total + share * penalty(names) if penalties else total

        return with_loss(value)

    said = f"output {error.output}, target {error.target}"
    shares = {f" + {share} * penalty": share for share in (0.5, 1.0)} if penalties else {"": 0.0}
    return best_fitting(
        (f"{formula}{mean}{more}, of {said}", pair_with(loss, share, bool(mean)))
        for more, share in shares.items()
        for mean in ("", ", the mean over the passes of a loop")
        for formula, loss in implied_losses("target_")
    )


def _gradients(
    found: Mapping[str, Any], parameters: list[str], multiplied: Collection[str]
) -> dict[str, str]:
    """Return the parameter of each name that looks like a gradient; none by shape of what an update multiplies further."""
    named = [name for name in found if is_gradient_name(name) and not plain(name).endswith(MOVES)]
    ours, theirs = ({tuple(name.split(".")): found[name] for name in names} for names in (named, parameters))
    return {
        ".".join(gradient): ".".join(parameter) for parameter, gradient in match(ours, theirs).items()
        if ".".join(gradient) not in multiplied or bare_name(parameter) in names_of_array(gradient)
    }  # fmt: skip


def _rate(updates: Statements, names: Mapping[str, Any]) -> float:
    """Return the number that the first update multiplies its gradient with, or 1: a learning rate's name says most."""
    products = (node for each in updates for node in ast.walk(each) if isinstance(node, ast.BinOp))
    factors: list[ast.expr] = []
    for node in products:  # lr * dW, and lr / n * dW
        factors += [node.left, node.right] if isinstance(node.op, ast.Mult) else []
        factors += [node.left] if isinstance(node.op, ast.Div) else []
    factors = [each.operand if isinstance(each, ast.UnaryOp) else each for each in factors]
    by_name = [name for name in map(ast.unparse, factors) if not is_gradient_name(name)]
    values = dict(places_in(names))
    known = [values.get(name) for name in sorted(by_name, key=lambda name: plain(name) not in RATES)]
    literal = [each.value for each in factors if isinstance(each, ast.Constant)]
    numbers = (value for value in (*known, *literal) if isinstance(value, float | int))
    return float(next(numbers, 1.0))
