"""A script without functions, or a function that trains, as a forward and a backward: its lines up to the first update."""

from __future__ import annotations

import ast
import copy
import inspect
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as File
from types import CodeType, FunctionType
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
from handgrad.checking.interfaces.script_lines import (
    ERRORS,
    MOVES,
    Error,
    Statements,
    added_in,
    after_updates,
    changed_in,
    computing,
    divided_in,
    error_in,
    every,
    flat,
    has_update,
    leaves,
    loss_calls,
    moved_by,
    names_in,
    parameters_in,
    parts_of_script,
    penalty_factors,
)
from handgrad.checking.interfaces.signatures import (
    definition_of,
    parameters_of,
)
from handgrad.checking.interfaces.tensors import (
    as_floats,
    in_float64,
    is_array_like,
    numbers_in,
    to_numpy,
)
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


def adapt_training(function: Function, given: Mapping[str, Any]) -> Pair:
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
    sums = {"dot", "matmul", "outer", "sum", "mean"}
    nodes = list(ast.walk(update))
    return any(isinstance(each, ast.MatMult) for each in nodes) or any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in sums
        for each in nodes
    )


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


@dataclass(frozen=True)
class _Code:
    """Lines that train: their file, how they are found in its tree, and the names that they begin with."""

    file: File
    statements: Callable[[ast.Module], Statements]
    names: Mapping[str, Any]
    given: Collection[str] = ()  # those among them that its caller gives


def _body_of(function: Function, tree: ast.Module) -> Statements:
    name, line = function.__name__, function.__code__.co_firstlineno
    definitions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    return min(definitions, key=lambda each: abs(each.lineno - line)).body


def _adapted(code: _Code, title: str, loss: str = "", gradients: Mapping[str, str] | None = None) -> Pair:
    training = _training(code, title)
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
    training: _Training,
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


def _unjudged(training: _Training, found: Mapping[str, Any], judged: Collection[str]) -> list[str]:
    """Return that an update moves what forward may read, and that is not judged: its rate has an unusual name."""
    head, body, updates = training.parts
    read = names_in([*head, *body], ast.Load)
    places = (each for each in changed_in(updates) if each in read or each.startswith("self."))
    moved = [each for each in places if each in found and each not in judged]
    moved = [each for each in moved if not is_gradient_name(each) and not is_loss_name(each)]
    return [f"the update of {', '.join(moved)} was not judged"] if moved else []


@dataclass(frozen=True)
class _Training:
    """The lines of a training as two functions, before the first update and of it, and what the update moves."""

    code: _Code
    statements: Statements
    parts: tuple[Statements, Statements, Statements]  # before the loop, in it before the update, the update
    parameters: list[str]
    main: FunctionType
    step: FunctionType
    data: Mapping[str, Any]  # names that the lines begin with and may change: arrays, and a method's object

    def run(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Run the lines before the update with the given values of names; return all names."""
        changed = {name: given[name] for name in self.code.given if name in given}
        names = {**self.main.__globals__, **copy.deepcopy(self.data), **changed, GIVEN: given, ERRORS: []}
        with in_float64():
            exec(self.main.__code__, names)
        return names


def _training(code: _Code, title: str) -> _Training:
    """Return the lines of a training, compiled; an error where they move nothing or return early."""
    file = code.file
    try:
        tree = ast.parse(file.read_bytes())
    except OSError:
        raise CheckError(f"the source of {title} was not found", fix="write it into a file") from None
    statements = code.statements(tree)
    is_updated = any(map(has_update, statements))

    def parts(tree: ast.Module) -> tuple[Statements, Statements, Statements]:
        return parts_of_script(code.statements(tree), file) if is_updated else ([], code.statements(tree), [])

    head, body, updates = parts(tree)
    known = {*code.given, *(name for name, value in code.names.items() if is_array_like(value))}
    parameters = parameters_in(updates, [*head, *body], known) if is_updated else leaves(body)
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
    data = {name: value for name, value in code.names.items() if is_array_like(value) or name == "self"}
    return _Training(code, statements, (head, body, updates), parameters, main, step, data)


def _floating(names: Mapping[str, Any], training: _Training) -> dict[str, Any]:
    """Return what the lines make or move of floating point; a parameter that starts as a whole number is a float."""
    known = training.data.keys() - set(training.parameters)
    found = {name: value for name, value in _places(names) if name not in known and is_floating(value)}
    whole = {name: _at(names, name) for name in training.parameters if name not in found}
    found |= {name: float(value) for name, value in whole.items() if type(value) is int}
    return found | {name: as_floats(value) for name, value in whole.items() if numbers_in(value)}


def _loss_name(found: Mapping[str, Any], statements: Statements) -> str:
    """Return the name of the loss that the statements compute, or none: it is one number, as an error is not."""
    single = [name for name in found if np.size(to_numpy(found[name])) == 1]
    called = _made_by_losses(statements)  # l = squared_loss(output, y)
    losses = (name for name in ("loss", *single) if name in single and (is_loss_name(name) or name in called))
    return next(losses, "")


def _stepping(
    training: _Training, gradients: Collection[str], moved: Collection[str], names: Mapping[str, Any]
) -> Callable[[dict[str, Any], dict[str, Any], list[Any]], dict[Path, Any]]:
    """Return what runs the update: the gradients by name are as computed, those of ``moved`` what it moves, by the rate."""
    moves = [each for each in training.parts[2] if has_update(each)]
    rate, added = _rate(moves, names), added_in(moves)

    def backward(_: dict[str, Any], names: dict[str, Any], upstream: list[Any]) -> dict[Path, Any]:
        found: dict[Path, Any] = {
            ("new", gradient): to_numpy(_at(names, gradient)) * (-1 if gradient in added else 1)
            for gradient in gradients
        }
        before = {name: np.array(to_numpy(_at(names, name))) for name in moved}
        exec(training.step.__code__, names)
        found |= {("moved", name): (before[name] - to_numpy(_at(names, name))) / rate for name in moved}
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


def _places(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and the object's attributes, with their values."""
    attributes = getattr(names.get("self"), "__dict__", {})
    return [*names.items(), *((f"self.{name}", value) for name, value in attributes.items())]


def _at(names: Mapping[str, Any], place: str) -> Any:
    """Return the value of a name or an attribute of the object."""
    name, _, attribute = place.partition(".")
    return getattr(names[name], attribute) if attribute else names[name]


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
            eval(factor, names) * np.sum(np.where(moves, _at(names, name), 0.0) ** 2)
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


def script_steps(file: File) -> tuple[dict[str, Any], Callable[[], object]] | None:
    """Return a script's names before its training loop, and what runs one step of it; None where it has no loop."""
    head, body, updates = parts_of_script(flat(ast.parse(file.read_bytes())), file)
    if not body:
        return None
    names = {"__name__": "__main__", "__file__": str(file), ERRORS: deque(maxlen=0)}  # which nobody asks for
    start = _compiled(head, file, names)
    names = start.__globals__
    exec(start.__code__, names)
    step = _compiled([*body, *updates], file, {}).__code__
    return names, lambda: exec(step, names)


def _reading_given(statements: Statements, parameters: list[str]) -> Statements:
    """Put the given value of each parameter behind the line that makes it, or before all others."""
    result: Statements = []
    statements = [each for each in statements if not isinstance(each, ast.Global)]  # all names are, here
    left = set(parameters)

    def read(names: set[str]) -> Statements:
        return ast.parse("\n".join(f"{name} = {GIVEN}.get({name!r}, {name})" for name in sorted(names))).body

    for statement in statements:
        made = names_in([statement], ast.Store) & left
        result += [statement, *read(made)]
        left -= made
    return [*read(left), *result]  # those that are there before: an object's, the module's


def _compiled(statements: Statements, file: File, known: Mapping[str, Any]) -> FunctionType:
    """Return statements as a function, whose code can be exchanged; it holds their tree, and what they import."""
    imports: Statements = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
    names: dict[str, Any] = dict(known)
    exec(compile(ast.Module(imports, []), str(file), "exec"), names)
    others = [each for each in statements if each not in imports]
    tree = ast.fix_missing_locations(ast.Module(others, []))
    try:
        code = compile(tree, str(file), "exec")
    except SyntaxError as error:  # a continue without its loop
        raise CheckError(
            f"{file}:{error.lineno}: its lines do not run one after the other: {error.msg}"
        ) from None
    function = FunctionType(code, names)
    function.__dict__["tree"] = tree
    return function


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
    values = dict(_places(names))
    known = [values.get(name) for name in sorted(by_name, key=lambda name: plain(name) not in RATES)]
    literal = [each.value for each in factors if isinstance(each, ast.Constant)]
    numbers = (value for value in (*known, *literal) if isinstance(value, float | int))
    return float(next(numbers, 1.0))
