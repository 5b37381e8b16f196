"""The lines of a training as two functions, up to its first update and of it, which run with any parameters."""

from __future__ import annotations

import ast
import copy
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from types import FunctionType
from typing import Any

from handgrad.checking.interfaces.calling import Function
from handgrad.checking.interfaces.script_lines import ERRORS, computing, leaves, parts_of_script
from handgrad.checking.interfaces.script_updates import (
    Statements,
    every,
    flat,
    has_update,
    names_in,
    parameters_in,
)
from handgrad.checking.interfaces.tensors import in_float64, is_array_like
from handgrad.checking.subject import CheckError

GIVEN = "__given__"  # the values of parameters, in the script's names


@dataclass(frozen=True)
class Code:
    """Lines that train: their file, how they are found in its tree, and the names that they begin with."""

    file: File
    statements: Callable[[ast.Module], Statements]
    names: Mapping[str, Any]
    given: Collection[str] = ()  # those among them that its caller gives


def body_of(function: Function, tree: ast.Module) -> Statements:
    """Return the statements of a function in its file's tree, as it is or changed."""
    name, line = function.__name__, function.__code__.co_firstlineno
    definitions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    if not definitions:
        raise _not_found(name)
    return min(definitions, key=lambda each: abs(each.lineno - line)).body


def _not_found(title: str) -> CheckError:
    return CheckError(f"the source of {title} was not found", fix="write it into a file")


@dataclass(frozen=True)
class Training:
    """The lines of a training as two functions, before the first update and of it, and what the update moves."""

    code: Code
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


def training_of(code: Code, title: str) -> Training:
    """Return the lines of a training, compiled; an error where they move nothing or return early."""
    file = code.file
    try:
        tree = ast.parse(file.read_bytes())
    except OSError:
        raise _not_found(title) from None
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

    main = compiled(before_update(tree), file, code.names)
    step = compiled(updates, file, code.names)
    main.__dict__["statements"] = before_update  # of a tree of the file, as it is or changed
    step.__dict__["statements"] = lambda tree: parts(tree)[2]
    data = {name: value for name, value in code.names.items() if is_array_like(value) or name == "self"}
    return Training(code, statements, (head, body, updates), parameters, main, step, data)


def places_in(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and the object's attributes, with their values."""
    attributes = getattr(names.get("self"), "__dict__", {})
    return [*names.items(), *((f"self.{name}", value) for name, value in attributes.items())]


def value_at(names: Mapping[str, Any], place: str) -> Any:
    """Return the value of a name or an attribute of the object."""
    name, _, attribute = place.partition(".")
    return getattr(names[name], attribute) if attribute else names[name]


def script_steps(file: File) -> tuple[dict[str, Any], Callable[[], object]] | None:
    """Return a script's names before its training loop, and what runs one step of it; None where it has no loop."""
    head, body, updates = parts_of_script(flat(ast.parse(file.read_bytes())), file)
    if not body:
        return None
    names = {"__name__": "__main__", "__file__": str(file), ERRORS: deque(maxlen=0)}  # which nobody asks for
    start = compiled(head, file, names)
    names = start.__globals__
    exec(start.__code__, names)
    step = compiled([*body, *updates], file, {}).__code__
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


def compiled(statements: Statements, file: File, known: Mapping[str, Any]) -> FunctionType:
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
