"""The author's functions, called with values by name, with global variables and an object of a copy's own."""

from __future__ import annotations

import ast
import copy
import dis
import functools
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

from handgrad.checking.interfaces.names import arrays_in, is_gradient, is_target
from handgrad.checking.interfaces.script_updates import names_in
from handgrad.checking.interfaces.signatures import definition_of, parameters_of, returned_values
from handgrad.checking.interfaces.tensors import is_array, is_numbers
from handgrad.checking.subject import CheckError, raised, seeded

Function = Callable[..., Any]
World = dict[str, Any]
"""The values that forward and backward are called with, by name; an object with both is "self"."""

MODULE = "module"  # in a world: the names of those of its values that are its functions' global variables
ALIASES = "aliases"  # in a world: the name under which it has what a forward calls otherwise


def call(function: Function, world: World) -> Any:
    """Call a function with the world's values of the same names; a parameter with a default may be missing."""
    given: World = {}
    for name, parameter in parameters_of(function).items():
        known = world.get(ALIASES, {}).get(name, name)
        if known in world:
            given[name] = world[known]
        elif parameter.default is parameter.empty:
            raise CheckError(
                f"{function.__name__} takes {name!r}, and the inputs have no {name!r}",
                given=f"the inputs are {', '.join(str(each) for each in world if each != 'self') or 'none'}",
                fix=f'add it to the inputs: {{"{name}": …}}',
            )
    try:
        result = in_world(function, world)(**given)
    except Exception as error:
        raise raised(function.__name__, error, given) from error
    if isinstance(result, list) and len(result) == len(returned_values(function)) > 1:
        return tuple(result)  # return [out, states]
    return _left_by(function, world) if result is None and "self" in world else result


def _left_by(function: Function, world: World) -> Any:
    """Return what a method that returns nothing leaves in its object: the attribute that it sets last."""
    definition = definition_of(function)
    statements = ast.walk(definition) if definition is not None else ()
    targets = (target for each in statements if isinstance(each, ast.Assign) for target in each.targets)
    names = [
        each.attr for each in targets if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
    ]
    return getattr(world["self"], names[-1], None) if names else None


def in_world(function: Function, world: World) -> Function:
    """Return a function that runs with the world's object and global variables in place of the originals."""
    if "self" in world and getattr(function, "__self__", None) is not None:
        function = getattr(world["self"], function.__name__)
    return functools.partial(_with_globals, function, world) if MODULE in world else function


def _with_globals(function: Function, world: World, **given: Any) -> Any:
    """Call a function with the world's values as global variables; what it makes of them is the world's again."""
    names, before = function.__globals__, dict(function.__globals__)
    names.update({name: world[name] for name in world[MODULE] if name in world})
    try:
        return function(**given)
    finally:
        world.update({name: names[name] for name in world[MODULE] if name in names})
        for name in [*world[MODULE]]:
            names.pop(name, None)
        names.update(before)


def globals_of(
    forward: Function, backward: Function, shapes: Collection[tuple[int, ...]] = ()
) -> dict[str, Any]:
    """Return the global variables that are parameters of two functions, as a world has them, with all that they set.

    A parameter is an array that forward reads, and that backward sets or changes in place, or whose gradient it has by name,
    or that is of one of the ``shapes``.
    """
    read, written = global_names(forward), global_names(backward)
    values = getattr(forward, "__globals__", {})
    stored = [name for name, stores in [*read.items(), *written.items()] if stores]
    variables = {name for each in _reached(backward) for name in each.__code__.co_varnames} | written.keys()
    floating = {
        name: values[name] for name in read if arrays_in(values.get(name)) and not callable(values[name])
    }
    # without a target among its arguments, that may be of the module too, and what backward starts from is unknown
    starts = any(is_target((name,)) for name in parameters_of(backward))
    in_place = {name for each in _reached(backward) * starts for name in _changed_in_place(each)}
    found = {
        name: value for name, value in floating.items()
        if name not in parameters_of(forward) and not isinstance(value, float)
        and (name in stored or name in in_place or (is_array(value) and value.shape in shapes)
             or any(is_gradient((other,), {(other,): 0, (name,): value}) for other in variables - {name}))
    }  # fmt: skip
    return {**found, MODULE: [*dict.fromkeys([*found, *stored])]} if found else {}


def with_variables(world: World, *functions: Function) -> World:
    """Return a world that knows those of its values as global variables that functions read, and take as no argument."""
    taken = {name for each in functions for name in parameters_of(each)}
    read = {name for each in functions for name in global_names(each)} - taken
    names = [name for name in world if name in read and name not in world.get(MODULE, ())]
    return {**world, MODULE: [*world.get(MODULE, ()), *names]} if names else world


def global_names(function: Function) -> dict[str, bool]:
    """Return the names of the module that a function and those that it calls use, and whether they set them."""
    codes = [each.__code__ for each in _reached(function)]
    used = [each for code in codes for each in dis.get_instructions(code) if each.opname.endswith("_GLOBAL")]
    stored = {each.argval for each in used if each.opname == "STORE_GLOBAL"}
    return {each.argval: each.argval in stored for each in used}


def _changed_in_place(function: Function) -> set[str]:
    """Return the names whose entries a function adds to or subtracts from, also as those of a loop: ``row[j] -= …``.

    None where it assigns entries of the module's arrays too, such as a velocity's, which the file's run has left.
    """
    nodes = [*ast.walk(definition_of(function) or ast.Pass())]
    assigned = [target for each in nodes if isinstance(each, ast.Assign) for target in each.targets]
    entries = (each.value for each in assigned if isinstance(each, ast.Subscript))
    if names_in([*entries]) - {*function.__code__.co_varnames}:
        return set()
    added = (each.target for each in nodes if isinstance(each, ast.AugAssign))
    found = {name for each in added if isinstance(each, ast.Subscript) for name in names_in([each.value])}
    loops = [each for each in nodes if isinstance(each, ast.For)]
    return found.union(*(names_in([each.iter]) for each in loops if found & names_in([each.target])))


def _reached(function: Function) -> list[FunctionType]:
    """Return a function and those of its module that it calls."""
    found: list[FunctionType] = []
    left: list[Any] = [getattr(function, "__func__", function)]
    while left:
        each = left.pop()
        if isinstance(each, FunctionType) and each not in found and each.__module__ == function.__module__:
            found.append(each)
            left += [each.__globals__.get(name) for name in each.__code__.co_names]
    return found


def trial_of(function: Function, world: World) -> Any:
    """Return what a function returns in a copy of the world."""
    with seeded():
        return call(function, copy.deepcopy(world))


def named(function: Function, inputs: Any) -> World:
    """Return inputs by name; those in a row are the function's parameters."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    values = () if inputs is None else inputs if isinstance(inputs, tuple | list) else (inputs,)
    return dict(zip(parameters_of(function), values, strict=False))


def by_returned_name(result: Any, names: list[str], inner: Mapping[int, list[str]] | None = None) -> Any:
    """Return a tuple as a dictionary, where the ``return`` names each of its values, or those ``inner`` to a value."""
    if not isinstance(result, tuple | list) or (is_numbers(result) and len(names) < 2):
        return result
    parts = tuple(
        dict(zip(inner[k], part, strict=True))
        if inner and k in inner and isinstance(part, tuple | list) and len(part) == len(inner[k]) else part
        for k, part in enumerate(result)
    )  # fmt: skip
    fits = len(parts) == len(names) == len(set(names)) and all(names)
    return dict(zip(names, parts, strict=True)) if fits else parts


@contextmanager
def variables_of(function: Function, found: dict[str, Any]) -> Iterator[None]:
    """Collect the variables, without arguments, that functions of a function's file have when they return."""
    file = function.__code__.co_filename

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename == file and not code.co_name.startswith("<"):
            own = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
            found.update({name: value for name, value in frame.f_locals.items() if name in own})

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(before)
