"""A forward and a backward that are functions, or methods of one object, in a world of their author's values."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.adapted_pair import Found, Run, adapt, left_by, rate_of
from handgrad.checking.interfaces.calling import (
    Function,
    World,
    by_returned_name,
    call,
    in_world,
    trial_of,
    variables_of,
)
from handgrad.checking.interfaces.implied_loss import OUTPUT, most_agreeing
from handgrad.checking.interfaces.names import (
    RATES,
    SAVED,
    SUFFIXES,
    Path,
    arrays_in,
    bare_name,
    get,
    is_floating,
    is_gradient_name,
    is_target,
    is_upstream_name,
    names_of_array,
    plain,
    words_of,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.signatures import (
    Role,
    definition_of,
    inner_names,
    names_read,
    parameters_of,
    required,
    returned_names,
    returned_values,
    roles_of,
    steps_beside,
)
from handgrad.checking.interfaces.tensors import is_array, is_numbers, to_numpy
from handgrad.checking.subject import CheckError

RATE = 0.01  # where an update takes a learning rate
UPDATES = {"update", "adjust", "step", "descent", "sgd"}  # in the names of functions that move parameters


def of_two(
    forward: Function,
    backward: Function,
    world: World,
    loss: Function | None = None,
    known: Mapping[str, Role] = MappingProxyType({}),
) -> Pair:
    """Return a forward and a backward, which starts from an upstream gradient or from a ``loss`` of forward's results.

    What ``known`` names has that role, whatever its name says.
    """
    names, trial = as_taken(forward, backward, world), trial_of(forward, world)
    several = isinstance(trial, tuple) and len(trial) > 1
    roles = roles_of(
        backward, {*parameters_of(forward), *world}, names if several else [], saves=several,
        arrays=sum(map(is_floating, trial)) if several else 1,
    )  # fmt: skip
    unknown = [each.parameter for each in roles if each.kind == "upstream"]
    saves = several and isinstance(trial[-1], dict | tuple | list)
    if saves and loss is not None and not known and len(unknown) == 1:  # (y, cache), and backward takes a c
        readings = [Role(unknown[0], "saved"), Role(unknown[0], "output", 0)]
        pairs = (_of_two_where(forward, backward, world, loss, each) for each in readings)
        if (pair := most_agreeing(pairs)) is not None:
            return pair
    nested = _nested_names(forward) if several else {}
    roles = [
        known.get(role.parameter) or _role_in_pair(role, nested, of_loss=loss is not None) for role in roles
    ]
    upstreams = [role.parameter for role in roles if role.kind == "upstream"]
    others = [name for name in upstreams if not is_upstream_name(name)]
    if not several and not known and len(upstreams) == 2 and len(others) == 1:
        inputs = [name for name in required(forward) if is_floating(world.get(name))]  # by another name
        readings = [Role(others[0], "output", 0), *(Role(others[0], "place", (name,)) for name in inputs)]
        pairs = (_of_two_where(forward, backward, world, loss, each) for each in readings)
        if (pair := most_agreeing(pairs)) is not None:
            return pair
    if several and loss is None and not known and len(others) == 1 < len(upstreams):  # (dy, h_last, cache)
        returned = [Role(others[0], "output", k) for k, each in enumerate(trial) if k and is_floating(each)]
        readings = [*returned, *(each for each in roles if each.parameter == others[0])]
        pairs = (_of_two_where(forward, backward, world, loss, each) for each in readings)
        if (pair := most_agreeing(pairs)) is not None:
            return pair
    outputs = max(1, len(upstreams)) if several else None
    run_forward = (
        _without_loss(forward, outputs) if loss is None else _with_loss(forward, loss, names, several=several)
    )
    run_backward, run_inside = (
        _running(forward, backward, roles, of_loss=loss is not None, inside=inside)
        for inside in (False, True)
    )
    return adapt(
        world, run_forward, run_backward, backward.__name__, run_inside=run_inside, of_loss=loss is not None
    )


def _of_two_where(
    forward: Function, backward: Function, world: World, loss: Function | None, role: Role
) -> Callable[[], Pair]:
    """Return what makes the pair in which a parameter of backward has a role."""
    return functools.partial(of_two, forward, backward, world, loss, {role.parameter: role})


def _role_in_pair(role: Role, nested: Mapping[str, tuple[int, int]], *, of_loss: bool) -> Role:
    """Return the role of a parameter of backward, corrected by what forward nests."""
    if role.parameter in nested and role.kind in ("upstream", "saved"):
        return role._replace(kind="output", which=nested[role.parameter])
    if of_loss and role.kind == "upstream":  # what is neither target nor input is the prediction
        return role._replace(kind="output", which=0)
    return role


def _without_loss(forward: Function, outputs: int | None) -> Callable[[World], Run]:
    """Return what runs forward; the first ``outputs`` of its results are differentiated, or its one result."""

    def run_forward(world: World) -> Run:
        result = call(forward, world)
        return [result] if outputs is None else list(result[:outputs]), result

    return run_forward


def _with_loss(
    forward: Function, loss: Function, names: list[str], *, several: bool
) -> Callable[[World], Run]:
    """Return what runs forward, and the loss on what forward returns, which it calls by ``names``."""

    def run_forward(world: World) -> Run:
        result = call(forward, world)
        if loss == forward:
            return [result], result
        implied = OUTPUT in parameters_of(loss)
        by_name = {} if implied else by_returned_name(result, names)
        known = by_name if isinstance(by_name, dict) else {}
        taken = (
            parameters_of(loss) if implied else required(loss)
        )  # one by another name: yhat, where forward returns a
        missing = next((name for name in taken if name not in world | known), "")
        parted = isinstance(result, list) and not is_numbers(result)
        by_layer = parted and len({np.shape(each) for each in result}) > 1
        parts = result if several or by_layer else (result,)
        known |= {missing: _output(parts, world)} if missing else {}
        return [call(loss, {**world, **known})], result

    return run_forward


def _running(
    forward: Function, backward: Function, roles: list[Role], *, of_loss: bool, inside: bool
) -> Callable[[World, Any, list[Any]], Found]:
    """Return what runs backward on what its parameters are given; ``inside``, its variables are found too."""
    names, inner = returned_names(backward), inner_names(backward)
    upstreams = [role.parameter for role in roles if role.kind == "upstream"]
    attribute = gradient_attribute(backward) if upstreams else ""
    carrier = upstream_of(backward) if not upstreams and not of_loss else ()
    steps = {text for name in steps_beside(forward) for text in (name, f".{name}")}
    takes_rate = any(role.kind in ("rate", "optimiser") for role in roles)

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
        if carrier:
            setattr(get(world["self"], carrier[:-1]), carrier[-1][1:], upstream[0])
        variables: dict[str, Any] = {}
        with variables_of(backward, variables) if inside else nullcontext():
            returned = in_world(backward, world)(**given)
        rate = RATE if takes_rate else rate_of(world, getattr(backward, "__globals__", {}))
        if len(names) == 1 and _is_of_a_parameter(names[0], returned, world):
            returned = {names[0]: returned}
        vector = is_numbers(returned) and np.shape(returned) in map(np.shape, before.values())
        parts = returned if vector else by_returned_name(returned, names, inner)
        left = left_by(world, before, parts, rate)
        found = {path: each for path, each in left.items() if path[0] == "moved" or path[-1] not in steps}
        found |= {("inside", *path): value for path, value in arrays_in(variables).items()}
        if upstreams or carrier:
            return found
        _check_scalar(forward, backward, found, np.shape(to_numpy(upstream[0])))
        return times(upstream[0], found)

    return run_backward


def _is_of_a_parameter(name: str, value: Any, world: World) -> bool:
    """Whether the only value returned is a parameter's gradient, by name and shape, and can be none of an argument."""
    if not is_array(value) or not is_gradient_name(name):
        return False
    shape = np.shape(value)
    if shape in (np.shape(each) for each in world.values() if is_array(each)):
        return False
    known = names_of_array((name,))
    return any(
        bare_name(path) in known and np.shape(each) == shape for path, each in arrays_in(world).items()
    )


def _check_scalar(forward: Function, backward: Function, found: Found, shape: tuple[int, ...]) -> None:
    """Raise CheckError where a backward without an upstream gradient differentiates an output that is no loss."""
    returned = (to_numpy(value) for (kind, *_), value in found.items() if kind == "returned")
    if np.prod(shape) > 1 and any(np.shape(value) != shape for value in returned):
        raise CheckError(
            f"{backward.__name__} takes no upstream gradient, and {forward.__name__} returns no loss",
            given=f"{forward.__name__} returns an array of shape {shape}",
            fix="give the method that computes the loss, which backward differentiates",
        )


def _nested_names(forward: Function) -> dict[str, tuple[int, int]]:
    """Return the place of each value of the tuples that forward returns, by name: ``return y, (Q, K, P)``."""
    return {
        name: (k, place)
        for k, names in inner_names(forward).items()
        for place, name in enumerate(names)
        if plain(name) not in SAVED and not name.endswith("cache")
    }


def as_taken(forward: Function, backward: Function, world: World) -> list[str]:
    """Return what forward calls what it returns, with the one that backward calls otherwise by backward's name.

    That is so where backward starts from a target: what it takes else is forward's.
    """
    names, taken = returned_names(forward), required(backward)
    known = {*names, *parameters_of(forward), *world}
    others = [
        name for name in taken
        if not (name in known or is_target((name,)) or is_upstream_name(name) or plain(name) in RATES | SAVED)
    ]  # fmt: skip
    left = [name for name in names if name not in taken]
    starts = any(is_target((name,)) for name in taken)
    if not (starts and len(names) > 1 and len(others) == len(left) == 1):
        return names
    return [others[0] if name == left[0] else name for name in names]


def _output(results: tuple[Any, ...] | list[Any], world: World) -> Any:
    """Return which of forward's results a loss compares: the last of a target's shape, the only of its size, or the first."""
    shapes = [np.shape(value) for name, value in world.items() if is_target((name,))]
    arrays = [each for each in results if is_array(each)]  # and no cache
    counts = {
        shape[0] for shape in shapes if len(shape) == 1
    }  # the last activation is compared with its classes
    labelled = [each for each in arrays if np.ndim(each) == 2 and counts & {*np.shape(each)}]
    last = (
        labelled[-1] if labelled else results[-1 if isinstance(results, list) else 0]
    )  # a list of activations
    sizes = [math.prod(shape) for shape in shapes]
    # 0.7 and [1]
    alike = [each for each in results if is_floating(each) and np.size(to_numpy(each)) in sizes]
    exact = (each for each in reversed(arrays) if np.shape(each) in shapes)
    return next(exact, alike[0] if len(alike) == 1 else last)


def _value(role: Role, world: World, result: Any, upstream: list[Any]) -> Any:
    match role.kind:
        case "argument":
            return world[role.which]
        case "place":
            return get(world, role.which)
        case "output":
            which = role.which if isinstance(role.which, tuple) else (role.which,)
            return functools.reduce(operator.getitem, which, result) if isinstance(result, tuple) else result
        case "saved":
            return result[-1]
        case "rate":
            return RATE
        case "optimiser":
            return GradientDescent()
        case "upstream":
            part = upstream[min(role.which, len(upstream) - 1)]
            return part[()] if np.ndim(part) == 0 else part


class GradientDescent:
    """Stands in for the optimiser that a backward takes: each of its methods makes a plain step, in place too.

    It is given a parameter and its gradient, and returns the parameter; or the gradient alone, and returns the step.
    """

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._step

    def _step(self, *given: Any, **options: Any) -> Any:
        *parameters, gradient = [each for each in (*given, *options.values()) if is_floating(each)]
        step = -RATE * np.asarray(gradient)
        if not parameters:
            return step
        if not isinstance(parameters[0], np.ndarray):
            return parameters[0] + step
        parameters[0] += step
        return parameters[0]


def update_after(
    backward: Function, methods: Mapping[str, Function] = MappingProxyType({})
) -> Function | None:
    """Return the only function beside a backward that is called an update and takes first what it takes, or None.

    A backward that returns nothing may leave what is not yet a gradient: the delta of each neuron. Beside it are the other
    functions of its file; beside one of the ``methods`` of an object, which is what they all take, these.
    """
    if returned_values(backward):
        return None
    beside = {**(methods or getattr(backward, "__globals__", {}))}.values()
    own = (each for each in beside if isinstance(each, FunctionType | MethodType))
    fitting = [
        each
        for each in own
        if each.__module__ == backward.__module__ and UPDATES & {*words_of(each.__name__)}
        if _first(each) == _first(backward)
    ]
    plain_step = len(fitting) == 1 and not any(map(_is_of_more, names_read(fitting[0])))
    return fitting[0] if plain_step else None


def _is_of_more(name: str) -> bool:
    """Whether a name says that a step is more than a rate times a gradient: a decay, a momentum."""
    return bool(
        {*words_of(name)} & {"decay", "reg", "l2", "lambda", "lambd", "lam", "momentum", "velocity", "beta"}
    )


def _first(function: Function) -> str:
    return "self" if isinstance(function, MethodType) else next(iter(parameters_of(function)), "")


def followed_by(backward: Function, update: Function) -> Function:
    """Return a function that runs a backward and then an update, with the parameters of both, and returns nothing.

    It is one of their file: what stands in for the file's global variables is seen by it too.
    """
    owner = ["self"] * isinstance(backward, MethodType)
    both = (backward, update)
    calls = [f"{'.'.join([*owner, each.__name__])}({', '.join(parameters_of(each))})" for each in both]
    parameters = parameters_of(update) | parameters_of(backward)
    text = f"lambda *, {', '.join([*owner, *parameters])}: [{', '.join(calls)}].clear()"
    function: FunctionType = eval(text, backward.__globals__)
    function.__name__ = backward.__name__
    function.__kwdefaults__ = {
        name: each.default for name, each in parameters.items() if each.default is not each.empty
    }
    return function


def times(upstream: Any, gradients: Found) -> Found:
    """Return gradients of a loss times its upstream gradient."""
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


def upstream_of(backward: Function) -> Path:
    """Return the path of the upstream gradient that a method reads from the output: ``out.g`` of ``self.out.g``."""
    definition = definition_of(backward)
    carried: dict[type, list[str]] = {ast.Load: [], ast.Store: []}
    for node in ast.walk(definition) if definition else ():
        match node:
            case ast.Attribute(ast.Attribute(ast.Name("self"), owner), name, context) if (
                plain(name) in SUFFIXES
            ):
                carried[type(context)].append(f"{owner}.{name}")
    read = [each for each in carried[ast.Load] if each not in carried[ast.Store]]
    return tuple(f".{each}" for each in read[0].split(".")) if read and carried[ast.Store] else ()
