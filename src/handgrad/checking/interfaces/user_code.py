"""A forward and a backward as people write them, as two functions of arrays by name."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.implied_loss import agreeing, implied_losses
from handgrad.checking.interfaces.methods import methods_of
from handgrad.checking.interfaces.names import (
    DERIVATIVES,
    RATES,
    SAVED,
    Path,
    Role,
    aliases_in,
    arrays_in,
    definition_of,
    get,
    is_floating,
    is_gradient,
    is_loss_name,
    is_target,
    match,
    parameters_of,
    plain,
    put,
    required,
    returned_names,
    roles_of,
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
"""All that may be a gradient, by path: "returned", "new" in the world, there before and "kept", or by how much "moved"."""

FLAGS = (*DERIVATIVES, "derive", "diff", "dx")
BUFFERS = ("running", "moving", "momentum", "velocit")  # arrays that a step moves and no gradient
LEARNING_RATES = RATES - {"alpha", "step", "rate"}
ALIASES = "aliases"  # in a world: the name under which it has what a forward calls otherwise
UPSTREAMS = ("d", "grad", "up", "delta", "err")
RATE = 0.01  # where an update takes a learning rate
STEP = 1e-6  # of the central difference that tells f'(x) from f'(f(x))


def recognise(forward: Any, backward: Function | None, inputs: Any) -> Pair:
    """Return code as it stands as two functions of arrays: an object, one of its methods, or functions."""
    if isinstance(forward, MethodType):
        return _of_object(forward.__self__, inputs, forward.__name__)
    if not isinstance(forward, FunctionType | BuiltinFunctionType):
        return _of_object(forward, inputs)
    world = named(forward, inputs)
    if backward is None:
        return _of_derivative(forward, forward, world) if flag_of(forward) else _of_loss(forward, world)
    if is_derivative(forward, backward):
        return _of_derivative(forward, backward, world)
    return _of_two(forward, backward, world, _loss_between(forward, backward, world))


def adapt(
    world: World,
    run_forward: Callable[[World], Run],
    run_backward: Callable[[World, Any, list[Any]], Found],
    name: str,
    matched: dict[Path, Path] | None = None,
) -> Pair:
    """Return two functions of arrays by name, and the arrays: those that have a gradient, and the data.

    ``run_forward`` runs in a world, and ``run_backward`` in the same world, on what forward left for it and the upstream
    gradients. ``matched`` is the path of each array's gradient, from the array's.
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
        matched = _matched(world, *run({}), run_backward)
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

    found = _in_words(gradients)
    return Pair(forward, backward, inputs, name, given=given, matched=found)


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
        texts.append(f"d{name} is {shown}")
    return (f"gradients matched: {', '.join(texts)}",) if texts else ()


def _matched(
    world: World, own: World, outputs: list[Any], result: Any, backward: Function
) -> dict[Path, Path]:
    """Find out, at the example, which gradient belongs to which array."""
    generator = np.random.default_rng(0)
    with in_float64(), seeded():
        drawn = [like(part, np.asarray(generator.normal(size=np.shape(part)))) for part in outputs]
        found = backward(own, result, drawn)
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
    names = {plain(path[-1]) for path in moved}
    free_moved = (path for path in moved if path in arrays and path not in matched)
    return matched | {path: ("moved", *path) for path in free_moved if not _is_buffer(path, names)}


def _found(found: Found, path: Path) -> Any:
    """Return what is at a path; room whose shape has changed is new."""
    return found[path] if path in found else found["new", *path[1:]]


def _in_shape(gradient: Any, array: Any) -> Any:
    """Return a gradient in its array's shape where they differ in axes of length 1 only: layout is no mistake."""
    shapes = [[size for size in np.shape(each) if size > 1] for each in (gradient, array)]
    return np.reshape(gradient, np.shape(array)) if shapes[0] == shapes[1] else gradient


def _is_buffer(path: Path, names: set[str]) -> bool:
    """Whether a step moves an array as a norm's or an optimiser's own: ``running_mean``, ``vW`` beside ``W``."""
    name = plain(path[-1])
    return any(word in name for word in BUFFERS) or (name[:1] in ("v", "m") and name[1:] in names)


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
        return _in_world(function, world)(**given)
    except Exception as error:
        raise raised(function.__name__, error, given) from error


def _in_world(function: Function, world: World) -> Function:
    """Return a method of the world's object in place of the original's: each run has a copy of the object."""
    is_method = "self" in world and getattr(function, "__self__", None) is not None
    return getattr(world["self"], function.__name__) if is_method else function


def _trial(function: Function, world: World) -> Any:
    """Return what a function returns in a copy of the world."""
    with seeded():
        return call(function, copy.deepcopy(world))


def named(function: Function, inputs: Any) -> World:
    """Return inputs by name; those in a row are the function's parameters."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    values = () if inputs is None else inputs if isinstance(inputs, tuple | list) else (inputs,)
    return dict(zip(parameters_of(function), values, strict=False))


def _by_returned_name(result: Any, names: list[str]) -> Any:
    """Return a tuple as a dictionary, where the ``return`` names each of its values."""
    fits = isinstance(result, tuple) and len(result) == len(names) == len(set(names)) and all(names)
    return dict(zip(names, result, strict=True)) if fits else result


# ------------------------------------------------------------------------------- the shapes people write


def _of_two(forward: Function, backward: Function, world: World, loss: Function | None = None) -> Pair:
    """Return a forward and a backward, which starts from an upstream gradient or from a ``loss`` of forward's results."""
    names, gradient_names = returned_names(forward), returned_names(backward)
    trial = _trial(forward, world)
    several = isinstance(trial, tuple) and len(trial) > 1
    roles = roles_of(backward, {*parameters_of(forward), *world}, names if several else [], saves=several)
    if loss is not None:  # what is neither target nor input is the prediction
        roles = [role._replace(kind="output", which=0) if role.kind == "upstream" else role for role in roles]
    upstreams = [role.parameter for role in roles if role.kind == "upstream"]
    attribute = gradient_attribute(backward) if upstreams else ""

    def run_forward(world: World) -> Run:
        result = call(forward, world)
        if loss is None:
            return list(result[: max(1, len(upstreams))]) if several else [result], result
        if loss == forward:
            return [result], result
        known = _by_returned_name(result, names)
        if not isinstance(known, dict):
            missing = next((name for name in parameters_of(loss) if name not in world), "")
            known = {missing: result[0] if several else result}
        return [call(loss, {**world, **known})], result

    def run_backward(world: World, result: Any, upstream: list[Any]) -> Found:
        before = {path: np.array(value) for path, value in arrays_in(world).items()}
        given = {
            role.parameter: _value(role, world, result, upstream)
            for role in roles
            if role.kind != "argument" or role.which in world  # else it keeps its default
        }
        for name in upstreams if attribute else ():
            setattr(result, attribute, given[name])
            given[name] = result
        returned = _in_world(backward, world)(**given)
        rate = RATE if any(role.kind == "rate" for role in roles) else _rate_of(world)
        found = _gradients(world, before, _by_returned_name(returned, gradient_names), rate)
        return found if upstreams else _times(upstream[0], found)

    return adapt(world, run_forward, run_backward, backward.__name__)


def _value(role: Role, world: World, result: Any, upstream: list[Any]) -> Any:
    match role.kind:
        case "argument":
            return world[role.which]
        case "output":
            return result[role.which] if isinstance(result, tuple) else result
        case "saved":
            return result[-1]
        case "rate":
            return RATE
        case "upstream":
            part = upstream[min(role.which, len(upstream) - 1)]
            return part[()] if np.ndim(part) == 0 else part


def _times(upstream: Any, gradients: Found) -> Found:
    return {path: np.asarray(to_numpy(value)) * to_numpy(upstream) for path, value in gradients.items()}


def gradient_attribute(backward: Function) -> str:
    """Return the attribute that holds gradients where arrays carry them: ``g`` of ``w.g = x.T @ y.g``."""
    definition = definition_of(backward)
    parameters = parameters_of(backward)
    for node in ast.walk(definition) if definition else ():
        match node:
            case ast.Attribute(value=ast.Name(id), attr=attribute, ctx=ast.Store()) if id in parameters:
                return attribute
    return ""


def _rate_of(world: World) -> float:
    """Return the learning rate of the world or its object, or 1."""
    known = {**world, **getattr(world.get("self"), "__dict__", {})}
    rates = (v for name, v in known.items() if plain(name) in RATES and isinstance(v, float | int))
    return float(next(rates, 1.0))


def _gradients(world: World, before: Mapping[Path, Any], returned: Any, rate: float) -> Found:
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


def _of_loss(function: Function, world: World) -> Pair:
    """Return a function that gives its loss and the gradients in one call."""
    names, trial = returned_names(function), _trial(function, world)
    parts = enumerate(trial) if isinstance(trial, tuple) else ()
    numbers = [k for k, part in parts if is_floating(part) and np.ndim(part) == 0]
    if not numbers:
        raise CheckError(
            f"backward is missing, and {function.__name__} returns no loss with its gradients",
            fix="give the backward too, or a function that returns (loss, gradients)",
        )
    place = next((k for k in numbers if k < len(names) and is_loss_name(names[k])), numbers[0])

    def run_forward(world: World) -> Run:
        result = call(function, world)
        return [result[place]], result[:place] + result[place + 1 :]

    def run_backward(world: World, rest: Any, upstream: list[Any]) -> Found:
        known = _by_returned_name(rest, names[:place] + names[place + 1 :]) if len(rest) > 1 else rest[0]
        return _times(upstream[0], {("returned", *path): value for path, value in arrays_in(known).items()})

    return adapt(world, run_forward, run_backward, function.__name__)


def _of_object(owner: Any, inputs: Any, chosen: str = "") -> Pair:
    """Return an object's forward and backward, found by the names of its methods; ``chosen`` is one of them."""
    forward, backward, losses, methods = methods_of(owner, chosen)
    known = [method for method in (forward, *losses, backward) if method is not None]
    if not known or (backward is None and not losses):
        raise CheckError(
            f"{type(owner).__name__} has no backward whose name is known",
            given=f"its methods are {', '.join(methods) or 'none'}",
            fix="give the method, as in check(net.my_backward, inputs=…)",
        )
    called = [method for method in known if method.__name__ == chosen]
    world = {**named(_taking(inputs, [*called, *known]), inputs), "self": owner}
    if backward is None or backward in losses:
        return _of_loss(backward or losses[0], world)
    if losses and (forward is None or not _takes_upstream(backward, forward, world)):
        runs = forward is not None and set(required(forward)) <= set(world)
        return _of_two(forward if runs and forward is not None else losses[0], backward, world, losses[0])
    if forward is None:
        raise CheckError(f"{type(owner).__name__} has no forward and no loss whose name is known")
    target = _target_of(backward, forward, world)
    aliases = alias_of(forward, backward)
    world |= {ALIASES: aliases} if aliases and set(aliases.values()) <= set(world) else {}
    if target and not losses:
        return _of_implied_loss(forward, backward, world, target)
    return _of_two(forward, backward, world)


def alias_of(forward: Function, backward: Function) -> dict[str, str]:
    """Return the name that a training method has for the only input of forward, ``x`` for ``a``, if it is another one."""
    wanted, given = required(forward), [each for each in required(backward) if each != "self"]
    wanted = [each for each in wanted if each != "self"]
    others = [
        each for each in given
        if not is_target((each,)) and not plain(each).startswith(UPSTREAMS) and plain(each) not in RATES | SAVED
        and not any(word in plain(each) for word in ("epoch", "iter", "rate", "batch"))
    ]  # fmt: skip
    trains = any(is_target((each,)) for each in given)
    return {wanted[0]: others[0]} if trains and len(wanted) == 1 == len(others) and wanted != others else {}


def _target_of(backward: Function, forward: Function, world: World) -> str:
    """Return the target that a backward takes instead of an upstream gradient, or ""."""
    roles = roles_of(backward, {*parameters_of(forward), *world}, [], saves=False)
    given = [role.parameter for role in roles if role.kind == "argument" and is_target((role.parameter,))]
    takes = any(plain(role.parameter).startswith(UPSTREAMS) for role in roles if role.kind == "upstream")
    return given[0] if given and not takes else ""


def _of_implied_loss(forward: Function, backward: Function, world: World, target: str) -> Pair:
    """Return a network without a loss with the one that fits its gradients best, half the squared error where none does."""
    best, most = None, -1
    for formula, loss in implied_losses(target):
        pair = _of_two(forward, backward, world, loss)
        pair = replace(pair, matched=(f"no loss was found: taken to be {formula}", *pair.matched))
        count, every = agreeing(pair)
        if count > most:
            best, most = pair, count
        if count == every:
            break
    assert best is not None
    return best


def _taking(inputs: Any, methods: list[Function]) -> Function:
    """Return the first method that takes as many inputs as are given."""
    count = len(inputs) if isinstance(inputs, tuple | list) else 1
    return next((each for each in methods if len(parameters_of(each)) >= count), methods[0])


def _takes_upstream(backward: Function, forward: Function, world: World) -> bool:
    """Whether the backward of an object that has a loss too takes an upstream gradient, and not targets."""
    kinds = [role.kind for role in roles_of(backward, {*parameters_of(forward), *world}, [], saves=False)]
    return "upstream" in kinds and "argument" not in kinds


def _loss_between(forward: Function, backward: Function, world: World) -> Function | None:
    """Return the loss from which a backward without an upstream gradient starts: a function of forward's results."""
    names = returned_names(forward)
    roles = roles_of(backward, {*parameters_of(forward), *world}, names, saves=len(names) > 1)
    is_loss = any(map(is_loss_name, [*names[:1], forward.__name__]))
    if is_loss or any(role.kind == "upstream" for role in roles):
        return None
    for name, value in getattr(forward, "__globals__", {}).items():
        if not isinstance(value, FunctionType) or value.__module__ != forward.__module__:
            continue
        takes_known = set(parameters_of(value)) <= {*names, *world}
        if takes_known and is_loss_name(name) and value not in (forward, backward):
            return value
    return None


# --------------------------------------------------------------------------------- f(x) and its derivative


def is_derivative(forward: Function, backward: Function) -> bool:
    """Whether a second function is the derivative of a first: its name and its parameters are made of the first's."""
    one, other = plain(forward.__name__), plain(backward.__name__)
    related = one in other and (other.startswith("d") or other.endswith(DERIVATIVES))
    return related and len(parameters_of(forward)) == len(parameters_of(backward))


def flag_of(function: Function) -> str:
    """Return the parameter by which a function gives its derivative instead, or ""."""
    options = (name for name, each in parameters_of(function).items() if each.default is False)
    return next((name for name in options if plain(name) in FLAGS), "")


def _of_derivative(function: Function, derivative: Function, inputs: World) -> Pair:
    """Return a function and its derivative, which is multiplied by the upstream gradient.

    Where the derivative is nearer to the slopes when it is given f(x), it is taken to be written in the output.
    """
    flag = flag_of(derivative) if derivative == function else ""
    slope = functools.partial(derivative, **{flag: True}) if flag else derivative
    output = np.asarray(to_numpy(call(function, inputs)))
    arrays = [name for name in parameters_of(function) if is_floating(inputs.get(name))]
    if not arrays:
        raise CheckError(
            "no input is an array of floating point, to be differentiated", fix="give x.astype(float)"
        )
    variable = min(arrays, key=lambda name: is_target((name,)))

    def at(world: World, where: Any) -> Any:
        given = [
            where if name == variable else world[name] for name in parameters_of(function) if name in world
        ]
        return slope(*given[: len(parameters_of(derivative)) - bool(flag)])

    x = np.asarray(to_numpy(inputs[variable]), np.float64)
    in_output = False
    if output.shape == x.shape:
        moved = (like(inputs[variable], x + h) for h in (STEP, -STEP))
        above, below = (np.asarray(to_numpy(call(function, {**inputs, variable: at}))) for at in moved)
        slopes = (above - below) / (2 * STEP)
        errors = [
            float(
                np.abs(np.asarray(to_numpy(at(inputs, like(inputs[variable], where)))) - slopes).max(
                    initial=0
                )
            )
            for where in (x, output)
        ]
        in_output = errors[1] < 1e-4 * max(1.0, float(np.abs(slopes).max(initial=0))) < errors[0]

    def run_forward(world: World) -> Run:
        result = call(function, world)
        return [result], result

    def run_backward(world: World, result: Any, upstream: list[Any]) -> Found:
        return _times(upstream[0], {("returned",): at(world, result if in_output else world[variable])})

    name = getattr(derivative, "__name__", "derivative")
    return adapt(inputs, run_forward, run_backward, name, {(variable,): ("returned",)})
