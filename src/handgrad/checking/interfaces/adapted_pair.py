"""A forward and a backward that run in a world of the author's values, as two functions of arrays by name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.calling import Function, World
from handgrad.checking.interfaces.implied_loss import agreeing
from handgrad.checking.interfaces.names import (
    LEARNING_RATES,
    RATES,
    Path,
    aliases_in,
    arrays_in,
    bare_name,
    get,
    is_gradient,
    is_gradient_name,
    is_list_of_indices,
    match,
    names_of_array,
    plain,
    put,
    show_path,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.tensors import fill, in_float64, is_array_like, is_tensor, like, to_numpy
from handgrad.checking.subject import CheckError, seeded

Run = tuple[list[Any], Any]
"""Of a forward: the arrays to differentiate, and what its backward is given of it."""
Found = dict[Path, Any]
"""All that may be a gradient, by path: "returned", "new" in the world, there before and "kept", by how much
"moved", or a variable "inside" of a function."""


def adapt(
    world: World,
    run_forward: Callable[[World], Run],
    run_backward: Callable[[World, Any, list[Any]], Found],
    name: str,
    matched: dict[Path, Path] | None = None,
    run_inside: Callable[[World, Any, list[Any]], Found] | None = None,
    *,
    of_loss: bool = False,
) -> Pair:
    """Return two functions of arrays by name, and the arrays: those that have a gradient, and the data.

    ``run_forward`` runs in a world, and ``run_backward`` in the same world, on what forward left for it and the upstream
    gradients; ``run_inside`` also finds the variables of the functions that run. ``matched`` is the path of each array's
    gradient, from the array's. Of what starts ``of_loss``, a gradient named otherwise than the data is not taken for theirs.
    """
    world = _in_float64(world)
    runs, limits = _Runs(world, run_forward, run_backward), list[str]()
    if matched is None:
        found = runs.at_example()
        matched = _matched(world, found, lambda path: _depends_on(runs.forward, world, path))
        matched |= _moved_elsewhere(runs, matched)
        matched = _without_data(matched) if of_loss else matched
        limits = _unjudged_updates(found, matched) + _unmatched(found, matched)
        if run_inside is not None and "moved" in {kind for kind, *_ in matched.values()}:
            inside = _Runs(world, run_forward, run_inside)
            if before_step := _before_step(world, matched, inside.at_example()):
                judged = [_pair_of(inside, name, matched | before_step), _pair_of(runs, name, matched)]
                return max(judged, key=lambda pair: agreeing(pair)[0])
    if not matched:
        raise CheckError(
            f"{name} returns no gradient, and leaves none: no array fits one of its inputs in name or shape",
            given=f"the inputs are {', '.join(map(show_path, arrays_in(world)))}",
        )
    if not any(_may_depend_on(runs.forward, world, path) for path in matched):
        raise CheckError(
            f"{name} returns the gradients of another function: the forward that was found depends on none of its inputs",
            given=f"the gradients are those of {', '.join(map(show_path, matched))}",
            fix="give the function that computes the loss from them, as in check(loss, backward, inputs=…)",
        )
    return replace(_pair_of(runs, name, matched), limits=tuple(limits))


def _unmatched(found: Found, matched: Mapping[Path, Path]) -> list[str]:
    """Return that a backward returns what is called a gradient, beside others, and fits no input."""
    returned = {path for path in matched.values() if path[0] == "returned"}
    named = [path[1] for path in found if path[0] == "returned" and path not in returned and len(path) == 2]
    left = [
        each for each in named if isinstance(each, str) and (is_gradient_name(each) or each.startswith("g_"))
    ]
    said = f"what it returns as {', '.join(left)} fits no input, and was not checked"
    return [said] if left and returned else []


def _unjudged_updates(found: Found, matched: Mapping[Path, Path]) -> list[str]:
    """Return that a backward moves parameters otherwise than along what was found to be their gradients."""
    moved = [
        show_path(path)
        for path, gradient in matched.items()
        if gradient[0] != "moved" and not _is_along(found.get(("moved", *path)), found[gradient])
    ]
    return [f"the update of {', '.join(moved)} was not judged, only the gradients"] if moved else []


def _is_along(step: Any, gradient: Any) -> bool:
    """Whether a step is a multiple of a gradient, or none."""
    if step is None or not np.any(step):
        return True
    one, other = (np.ravel(to_numpy(each)).astype(float) for each in (step, gradient))
    return one.shape == other.shape and one @ other >= (1 - 1e-9) * np.linalg.norm(one) * np.linalg.norm(
        other
    )


class _Runs:
    """Runs a forward and a backward in copies of a world, with other values in it."""

    def __init__(self, world: World, run_forward: Function, run_backward: Function) -> None:
        self.world, self.aliases = world, aliases_in(world)
        self.run_forward, self.run_backward = run_forward, run_backward

    def forward(self, values: Mapping[Path, Any], world: World | None = None) -> tuple[World, list[Any], Any]:
        """Run forward in a copy of the world, or of another; return the copy, the outputs and what backward is given."""
        with in_float64(), seeded():
            own = copy.deepcopy(self.world if world is None else world)
            for path, value in values.items():
                new = _in_place_of(get(own, path), value)
                for each in (path, *self.aliases.get(path, ())):
                    own = put(own, each, new)
            return (own, *self.run_forward(own))

    def at_example(self) -> Found:
        """Return what backward leaves in the world as it is, for upstream gradients that are drawn."""
        own, outputs, result = self.forward({})
        generator = np.random.default_rng(0)
        with in_float64(), seeded():
            drawn = [like(part, np.asarray(generator.normal(size=np.shape(part)))) for part in outputs]
            found: Found = self.run_backward(own, result, drawn)
            return found


def _in_place_of(old: Any, new: Any) -> Any:
    """Return a value in the type of what it takes the place of."""
    if is_tensor(old):
        return like(old, np.array(new) if type(new) is np.ndarray else new)
    if isinstance(old, list):
        return fill(old, new)
    if type(new) is not np.ndarray:
        return new
    # an array of its own: what updates in place changes it
    return float(new) if isinstance(old, float) else new.copy().view(type(old))


def _pair_of(runs: _Runs, name: str, matched: Mapping[Path, Path]) -> Pair:
    """Return what runs in a world as two functions of those of its arrays that have a gradient, and of its data."""
    world = runs.world
    data = [(each,) for each, value in world.items() if is_array_like(value) or is_list_of_indices(value)]
    paths = {show_path(path): path for path in (*matched, *data)}
    gradients = {each: matched[path] for each, path in paths.items() if path in matched}

    last: list[tuple[dict[str, Any], World, list[Any], Any]] = []  # what the last forward left, at its values
    misplaced = set[str]()  # of the last gradients, those in a layout in which they cannot be subtracted
    alive: list[Any] = []  # the backward that it made, if it did: what runs is looked for by its code

    def forward(**values: Any) -> Any:
        own, outputs, result = runs.forward({path: values[each] for each, path in paths.items()})
        last[:], alive[:] = [(values, own, outputs, result)], [result] * isinstance(result, FunctionType)
        given = tuple(map(to_numpy, outputs))
        return given if len(given) > 1 else given[0]

    def backward(upstream: Any, **values: Any) -> dict[str, Any]:
        if not last or isinstance(last[0][-1], FunctionType) or not _same_values(values, last[0][0]):
            forward(**values)
        _, own, outputs, result = last.pop()
        return gradients_of(upstream, values, own, outputs, result)

    def after_another(upstream: Any, **values: Any) -> dict[str, Any]:
        """Return the gradients that are those of the call before, where forward was run on other data in it."""
        at = {path: values[each] for each, path in paths.items()}
        other = {path: np.reshape(np.ravel(at[path])[::-1], np.shape(at[path])) for path in data}
        with suppress(CheckError, KeyError):
            before, again = runs.forward(at | other), runs.forward(at, runs.forward(at | other)[0])
            first = runs.forward(at)
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
            found = runs.run_backward(own, result, parts)
        by_name = {each: _found(found, path) for each, path in gradients.items()}
        misplaced.clear()
        misplaced.update(each for each, gradient in by_name.items() if not _can_move(values[each], gradient))
        return {each: _in_shape(gradient, values[each]) for each, gradient in by_name.items()}

    backward.misplaced = misplaced  # type: ignore[attr-defined]
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


def _same_values(values: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return all(np.array_equal(values[each], value) for each, value in others.items())


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


def _matched(world: World, found: Found, is_read: Callable[[Path], bool]) -> dict[Path, Path]:
    """Find out which gradient belongs to which array; an array moved by a step is a parameter if forward reads it."""
    every = arrays_in(world)
    arrays = {
        path: array
        for path, array in every.items()
        if not is_gradient(path, every) and plain(path[-1]) not in LEARNING_RATES
    }
    rooms = {path for path in every if is_gradient(path, every)}  # what forward itself saved is none
    matched: dict[Path, Path] = {}
    for kind in ("returned", "new", "kept"):
        paths = [path[1:] for path in found if path[0] == kind and (kind != "kept" or path[1:] in rooms)]
        free = {path: array for path, array in arrays.items() if path not in matched}
        if kind != "returned":  # a neuron's delta is the gradient of what no name holds
            paths = [path for path in paths if plain(path[-1]) != "delta"]
        matches = match({path: found[kind, *path] for path in paths}, free)
        matched |= {array: (kind, *gradient) for array, gradient in matches.items()}
    moved = [path[1:] for path in found if path[0] == "moved" and np.any(found[path])]
    if moved:  # a training may return its loss: one number, as its rate is, and no gradient of an array

        def is_loss(path: Path, gradient: Path) -> bool:
            is_number = gradient == ("returned",) and np.size(to_numpy(found[gradient])) == 1
            return plain(path[-1]) in RATES or (is_number and np.size(to_numpy(arrays[path])) > 1)

        matched = {path: gradient for path, gradient in matched.items() if not is_loss(path, gradient)}
    free_moved = (path for path in moved if path in arrays and path not in matched)
    return matched | {path: ("moved", *path) for path in free_moved if is_read(path)}


def _moved_elsewhere(runs: _Runs, matched: Mapping[Path, Path]) -> dict[Path, Path]:
    """Return what a step moves where data of zeros, as the first row of XOR, are other numbers, and not as they are."""
    world, generator = dict(runs.world), np.random.default_rng(0)
    top = {
        path[0]: value for path, value in arrays_in(world).items() if len(path) == 1 and path not in matched
    }
    zeros = {name: value for name, value in top.items() if not np.any(to_numpy(value))}
    if not zeros or "moved" not in {kind for kind, *_ in matched.values()}:
        return {}
    world |= {
        name: _in_place_of(old, generator.uniform(0.5, 1.5, np.shape(old))) for name, old in zeros.items()
    }
    other = _Runs(world, runs.run_forward, runs.run_backward)
    with suppress(Exception):  # whatever the author's code raises: it may need the zeros
        every = _matched(world, other.at_example(), lambda path: _depends_on(other.forward, world, path))
        return {
            path: gradient
            for path, gradient in every.items()
            if path not in matched and gradient[0] == "moved"
        }
    return {}


def _without_data(matched: dict[Path, Path]) -> dict[Path, Path]:
    """Drop data with a gradient by shape, beside parameters with theirs by name: courses put 1/m in the others only."""
    named = {path for path, gradient in matched.items() if bare_name(path) in names_of_array(gradient[1:])}
    data = {
        path for path, gradient in matched.items()
        if len(path) == 1 and isinstance(gradient[-1], str) and is_gradient_name(gradient[-1]) and path not in named
    }  # fmt: skip
    return {path: gradient for path, gradient in matched.items() if path not in data or not named}


def _depends_on(run: Callable[[Mapping[Path, Any]], Any], world: World, path: Path) -> bool:
    """Whether forward's outputs are others at another array; running statistics and an optimiser's state are not read."""
    array = np.asarray(to_numpy(get(world, path)))
    other = array + np.random.default_rng(0).uniform(0.1, 0.9, array.shape)
    outputs = [run(values)[1] for values in ({}, {path: other})]
    pairs = zip(*([np.asarray(to_numpy(each)) for each in parts] for parts in outputs), strict=True)
    return not all(np.array_equal(before, after, equal_nan=True) for before, after in pairs)


def _may_depend_on(run: Callable[[Mapping[Path, Any]], Any], world: World, path: Path) -> bool:
    """Whether forward's outputs are others at another array, or cannot be computed there."""
    try:
        with np.errstate(all="ignore"):
            outputs = [np.asarray(to_numpy(each)) for each in run({})[1]]
            told = all(each.size and np.all(np.isfinite(each)) for each in outputs)
            return not told or _depends_on(run, world, path)
    except Exception:  # whatever the author's code does outside its domain
        return True


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
    known = path if path in found else ("new", *path[1:])
    if known not in found:
        raise CheckError(
            f"backward leaves a {show_path(path[1:]) or 'gradient'} at some upstream gradients, and none at others"
        )
    return found[known]


def _in_shape(gradient: Any, array: Any) -> Any:
    """Return a gradient in its array's shape where they differ in axes of length 1 only: layout is no mistake."""
    shapes = [[size for size in np.shape(each) if size > 1] for each in (gradient, array)]
    return np.reshape(gradient, np.shape(array)) if shapes[0] == shapes[1] else gradient


def _can_move(array: Any, gradient: Any) -> bool:
    """Whether an array keeps its shape when a gradient is subtracted: (10, 1) does not, of (10,)."""
    try:
        return np.broadcast_shapes(np.shape(array), np.shape(gradient)) == np.shape(array)
    except ValueError:
        return False


# ------------------------------------------------------------------------------------- what a backward leaves


def rate_of(world: World, names: Mapping[str, Any]) -> float:
    """Return the learning rate of the world, its object, the classes of its module or the module's ``names``, or 1."""
    owner = world.get("self")
    classes = [
        each for each in names.values() if isinstance(each, type) and each.__module__ == names.get("__name__")
    ]
    known = [world, getattr(owner, "__dict__", {}), vars(type(owner)), *map(vars, classes), names]
    every = ((name, value) for each in known for name, value in each.items())
    rates = (v for name, v in every if plain(name) in RATES and isinstance(v, float | int))
    return float(next(rates, 1.0))


def left_by(world: World, before: Mapping[Path, Any], returned: Any, rate: float) -> Found:
    """Return all that may be a gradient after a backward, by path."""
    given = {} if returned is world.get("self") else arrays_in(returned)  # fit returns its object
    found = {("returned", *path): value for path, value in given.items()}
    for path, value in arrays_in(world).items():
        if path in before:
            found[("kept", *path)] = value
        if path in before and _is_step(before[path], value):
            found[("moved", *path)] = (before[path] - np.asarray(value)) / rate
        else:
            found[("new", *path)] = value  # of another shape too: room that was filled by an earlier call
    return found


def _is_step(before: Any, after: Any) -> bool:
    """Whether an array may be another after a step: of the same shape, or broadcast, as `b - rate * dz` is."""
    shapes = np.shape(before), np.shape(after)
    if len(shapes[0]) != len(shapes[1]):
        return False
    return all(old in (1, new) for old, new in zip(*shapes, strict=True))
