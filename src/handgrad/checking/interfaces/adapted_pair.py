"""A forward and a backward that run in a world of the author's values, as two functions of arrays by name."""

from __future__ import annotations

import copy
import dis
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.implied_loss import agreeing
from handgrad.checking.interfaces.names import (
    RATES,
    Path,
    aliases_in,
    arrays_in,
    get,
    is_gradient,
    match,
    parameters_of,
    plain,
    put,
    show_path,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.tensors import in_float64, is_array, is_tensor, like, to_numpy
from handgrad.checking.subject import CheckError, raised, seeded

Function = Callable[..., Any]
World = dict[str, Any]
"""The values that forward and backward are called with, by name; an object with both is "self"."""
Run = tuple[list[Any], Any]
"""Of a forward: the arrays to differentiate, and what its backward is given of it."""
Found = dict[Path, Any]
"""All that may be a gradient, by path: "returned", "new" in the world, there before and "kept", by how much
"moved", or a variable "inside" of a function."""

MODULE = "module"  # in a world: the names of those of its values that are its functions' global variables
LEARNING_RATES = RATES - {"alpha", "step", "rate"}
ALIASES = "aliases"  # in a world: the name under which it has what a forward calls otherwise


def adapt(
    world: World,
    run_forward: Callable[[World], Run],
    run_backward: Callable[[World, Any, list[Any]], Found],
    name: str,
    matched: dict[Path, Path] | None = None,
    run_inside: Callable[[World, Any, list[Any]], Found] | None = None,
) -> Pair:
    """Return two functions of arrays by name, and the arrays: those that have a gradient, and the data.

    ``run_forward`` runs in a world, and ``run_backward`` in the same world, on what forward left for it and the upstream
    gradients; ``run_inside`` also finds the variables of the functions that run. ``matched`` is the path of each array's
    gradient, from the array's.
    """
    world = _in_float64(world)
    aliases = aliases_in(world)

    def run(values: Mapping[Path, Any], world: World = world) -> tuple[World, list[Any], Any]:
        with in_float64(), seeded():
            own = copy.deepcopy(world)
            for path, value in values.items():
                new, old = value, get(world, path)
                if is_tensor(old):
                    new = like(old, np.array(new) if type(new) is np.ndarray else new)
                elif type(new) is np.ndarray:  # an array of its own: what updates in place changes it
                    new = float(new) if isinstance(old, float) else new.copy().view(type(old))
                for each in (path, *aliases.get(path, ())):
                    own = put(own, each, new)
            return (own, *run_forward(own))

    if matched is None:
        own, outputs, result = run({})
        found = _at_example(own, outputs, result, run_backward)
        matched = _matched(world, found, lambda path: _depends_on(run, world, path))
        if run_inside is not None and "moved" in {kind for kind, *_ in matched.values()}:
            own, outputs, result = run({})
            before_step = _before_step(world, matched, _at_example(own, outputs, result, run_inside))
            if before_step:
                judged = [
                    adapt(world, run_forward, run_inside, name, matched | before_step),
                    adapt(world, run_forward, run_backward, name, matched),
                ]
                return max(judged, key=lambda pair: agreeing(pair)[0])
    if not matched:
        raise CheckError(
            f"{name} returns no gradient, and leaves none: no array fits one of its inputs in name or shape",
            given=f"the inputs are {', '.join(map(show_path, arrays_in(world)))}",
        )
    data = [(each,) for each, value in world.items() if is_array(value)]
    paths = {show_path(path): path for path in (*matched, *data)}
    gradients = {each: matched[path] for each, path in paths.items() if path in matched}

    last: list[tuple[dict[str, Any], World, list[Any], Any]] = []  # what the last forward left, at its values

    def forward(**values: Any) -> Any:
        own, outputs, result = run({path: values[each] for each, path in paths.items()})
        last[:] = [(values, own, outputs, result)]
        given = tuple(map(to_numpy, outputs))
        return given if len(given) > 1 else given[0]

    def backward(upstream: Any, **values: Any) -> dict[str, Any]:
        if not last or not all(np.array_equal(values[each], value) for each, value in last[0][0].items()):
            forward(**values)
        _, own, outputs, result = last.pop()
        return gradients_of(upstream, values, own, outputs, result)

    def after_another(upstream: Any, **values: Any) -> dict[str, Any]:
        """Return the gradients that are those of the call before, where forward was run on other data in it."""
        at = {path: values[each] for each, path in paths.items()}
        other = {path: np.reshape(np.ravel(at[path])[::-1], np.shape(at[path])) for path in data}
        with suppress(CheckError, KeyError):
            before, again = run(at | other), run(at, run(at | other)[0])
            first = run(at)
            if all(map(np.array_equal, map(to_numpy, again[1]), map(to_numpy, first[1]))):
                right, stale, found = (
                    gradients_of(upstream, values, *each) for each in (first, before, again)
                )
                return {
                    name: gradient
                    for name, gradient in found.items()
                    if np.array_equal(gradient, stale[name]) and not np.array_equal(gradient, right[name])
                }
        return {}

    def gradients_of(
        upstream: Any, values: Mapping[str, Any], own: World, outputs: list[Any], result: Any
    ) -> dict[str, Any]:
        given = list(upstream) if isinstance(upstream, tuple | list) else [upstream]
        with in_float64():  # not seeded: what it draws itself differs from call to call
            parts = [like(output, part) for output, part in zip(outputs, given, strict=True)]
            found = run_backward(own, result, parts)
        return {each: _in_shape(_found(found, path), values[each]) for each, path in gradients.items()}

    if "self" in world:
        backward.after_another = after_another  # type: ignore[attr-defined]
    inputs = {each: np.asarray(to_numpy(get(world, path))) for each, path in paths.items()}

    def given(values: Mapping[str, Any]) -> dict[str, Any]:
        return {each: like(get(world, path), values[each]) for each, path in paths.items()}

    return Pair(forward, backward, inputs, name, given=given, matched=_in_words(gradients))


def _in_float64(world: World) -> World:
    """Return a world with its tensors, which are float32 unasked, in float64; one without tensors as it is."""
    tensors = [path for path in arrays_in(world) if is_tensor(get(world, path))]
    wide, aliases = (copy.deepcopy(world), aliases_in(world)) if tensors else (world, {})
    with in_float64():
        for path in tensors:
            new = like(value := get(wide, path), np.asarray(to_numpy(value), np.float64))
            for each in (path, *aliases.get(path, ())):
                wide = put(wide, each, new)
    return wide


def _in_words(gradients: Mapping[str, Path]) -> tuple[str, ...]:
    """Return which gradient was taken for that of each array."""
    kinds = {"returned": "returned", "moved": "(before - after) / learning rate"}
    texts = []
    for name, (kind, *rest) in gradients.items():
        place = show_path(tuple(rest))
        shown = f"returned {place}".strip() if kind == "returned" else kinds.get(kind, place)
        shown += " (its step adds an optimiser's state or weight decay)" * (kind == "inside")
        texts.append(f"d{name} is {shown}")
    return (f"gradients matched: {', '.join(texts)}",) if texts else ()


def _at_example(own: World, outputs: list[Any], result: Any, run_backward: Function) -> Found:
    """Return what a backward leaves at the example, for upstream gradients that are drawn."""
    generator = np.random.default_rng(0)
    with in_float64(), seeded():
        drawn = [like(part, np.asarray(generator.normal(size=np.shape(part)))) for part in outputs]
        found: Found = run_backward(own, result, drawn)
        return found


def _matched(world: World, found: Found, is_read: Callable[[Path], bool]) -> dict[Path, Path]:
    """Find out which gradient belongs to which array; an array moved by a step is a parameter if forward reads it."""
    every = arrays_in(world)
    arrays = {
        path: array
        for path, array in every.items()
        if not is_gradient(path, every) and plain(path[-1]) not in LEARNING_RATES
    }
    rooms = every.keys() - arrays.keys()  # for gradients; what forward itself saved is none
    matched: dict[Path, Path] = {}
    for kind in ("returned", "new", "kept"):
        paths = [path[1:] for path in found if path[0] == kind and (kind != "kept" or path[1:] in rooms)]
        free = {path: array for path, array in arrays.items() if path not in matched}
        matches = match({path: found[kind, *path] for path in paths}, free)
        matched |= {array: (kind, *gradient) for array, gradient in matches.items()}
    moved = [path[1:] for path in found if path[0] == "moved" and np.any(found[path])]
    free_moved = (path for path in moved if path in arrays and path not in matched)
    return matched | {path: ("moved", *path) for path in free_moved if is_read(path)}


def _depends_on(run: Callable[[Mapping[Path, Any]], Any], world: World, path: Path) -> bool:
    """Whether forward's outputs are others at another array; running statistics and an optimiser's state are not read."""
    array = np.asarray(to_numpy(get(world, path)))
    other = array + np.random.default_rng(0).uniform(0.1, 0.9, array.shape)
    outputs = [run(values)[1] for values in ({}, {path: other})]
    pairs = zip(*([np.asarray(to_numpy(each)) for each in parts] for parts in outputs), strict=True)
    return not all(np.array_equal(before, after, equal_nan=True) for before, after in pairs)


def _before_step(world: World, matched: Mapping[Path, Path], found: Found) -> dict[Path, Path]:
    """Return, of each array whose step is more than learning rate x gradient, the variable that is its gradient.

    That is so where the step goes along it, and keeps state of the array's shape (momentum, Adam), or adds a share of the
    array (weight decay).
    """
    arrays = {
        path: np.asarray(to_numpy(get(world, path)))
        for path, (kind, *_) in matched.items()
        if kind == "moved"
    }
    steps = {path: np.asarray(found["moved", *path]) for path in arrays}
    others = (path for path in found if path[0] == "moved" and path[1:] not in matched)
    states = [np.shape(found[path]) for path in others if np.any(found[path])]
    inside = {path[1:]: value for path, value in found.items() if path[0] == "inside"}
    gradients = {path: value for path, value in inside.items() if is_gradient(path, _beside(path, arrays))}
    chosen: dict[Path, Path] = {}
    for path, gradient in match(gradients, arrays).items():
        value, step = np.asarray(gradients[gradient]), steps[path]
        if np.shape(value) != step.shape or np.allclose(step, value) or np.sum(step * value) <= 0:
            continue
        share = np.sum((step - value) * arrays[path]) / np.sum(arrays[path] ** 2)
        if step.shape in states or (share > 0 and np.allclose(step - value, share * arrays[path])):
            chosen[path] = ("inside", *gradient)
    return chosen


def _beside(path: Path, arrays: Mapping[Path, Any]) -> dict[Path, Any]:
    """Return arrays as if they were variables beside one."""
    return {(*path[:-1], plain(each[-1])): array for each, array in arrays.items()}


def _found(found: Found, path: Path) -> Any:
    """Return what is at a path; room whose shape has changed is new."""
    return found[path] if path in found else found["new", *path[1:]]


def _in_shape(gradient: Any, array: Any) -> Any:
    """Return a gradient in its array's shape where they differ in axes of length 1 only: layout is no mistake."""
    shapes = [[size for size in np.shape(each) if size > 1] for each in (gradient, array)]
    return np.reshape(gradient, np.shape(array)) if shapes[0] == shapes[1] else gradient


# ------------------------------------------------------------------------------------------------ calling


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
        return in_world(function, world)(**given)
    except Exception as error:
        raise raised(function.__name__, error, given) from error


def in_world(function: Function, world: World) -> Function:
    """Return a function that runs with the world's object and global variables in place of the originals."""
    if "self" in world and getattr(function, "__self__", None) is not None:
        method: Function = getattr(world["self"], function.__name__)
        return method
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


def globals_of(forward: Function, backward: Function) -> dict[str, Any]:
    """Return the global variables that are parameters of two functions, as a world has them, with all that they set.

    A parameter is an array that forward reads, and that backward sets, or whose gradient it has by name.
    """
    read, written = _global_names(forward), _global_names(backward)
    values = getattr(forward, "__globals__", {})
    stored = [name for name, stores in [*read.items(), *written.items()] if stores]
    variables = {name for each in _reached(backward) for name in each.__code__.co_varnames} | written.keys()
    floating = {
        name: values[name] for name in read if arrays_in(values.get(name)) and not callable(values[name])
    }
    found = {
        name: value for name, value in floating.items()
        if name not in parameters_of(forward) and not isinstance(value, float)
        and (name in stored or any(is_gradient((other,), {(other,): 0, (name,): value}) for other in variables - {name}))
    }  # fmt: skip
    return {**found, MODULE: [*dict.fromkeys([*found, *stored])]} if found else {}


def _global_names(function: Function) -> dict[str, bool]:
    """Return the names of the module that a function and those that it calls use, and whether they set them."""
    codes = [each.__code__ for each in _reached(function)]
    used = [each for code in codes for each in dis.get_instructions(code) if each.opname.endswith("_GLOBAL")]
    stored = {each.argval for each in used if each.opname == "STORE_GLOBAL"}
    return {each.argval: each.argval in stored for each in used}


def _reached(function: Function) -> list[FunctionType]:
    """Return a function and those of its module that it calls."""
    found: list[FunctionType] = []
    left: list[Any] = [function]
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


def by_returned_name(result: Any, names: list[str]) -> Any:
    """Return a tuple as a dictionary, where the ``return`` names each of its values."""
    fits = isinstance(result, tuple) and len(result) == len(names) == len(set(names)) and all(names)
    return dict(zip(names, result, strict=True)) if fits else result


def rate_of(world: World) -> float:
    """Return the learning rate of the world or its object, or 1."""
    known = {**world, **getattr(world.get("self"), "__dict__", {})}
    rates = (v for name, v in known.items() if plain(name) in RATES and isinstance(v, float | int))
    return float(next(rates, 1.0))


def left_by(world: World, before: Mapping[Path, Any], returned: Any, rate: float) -> Found:
    """Return all that may be a gradient after a backward, by path."""
    found = {("returned", *path): value for path, value in arrays_in(returned).items()}
    for path, value in arrays_in(world).items():
        if path in before:
            found[("kept", *path)] = value
        if path in before and np.shape(value) == before[path].shape:
            found[("moved", *path)] = (before[path] - np.asarray(value)) / rate
        else:
            found[("new", *path)] = value  # of another shape too: room that was filled by an earlier call
    for name, value in world.items():  # x.g: an array that has attributes
        if isinstance(value, np.ndarray):
            found |= {("new", f"{name}_{key}"): item for key, item in getattr(value, "__dict__", {}).items()}
    return found


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
