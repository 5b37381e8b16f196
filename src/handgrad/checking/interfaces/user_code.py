"""A forward and a backward as people write them, as two functions of arrays by name."""

from __future__ import annotations

import ast
import copy
import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.checking.interfaces.matching import is_gradient, match
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.paths import Path, arrays_in, get, put, show_path
from handgrad.checking.interfaces.roles import (
    RATES,
    Role,
    definition_of,
    is_loss_name,
    parameters_of,
    plain,
    returned_names,
    roles_of,
)
from handgrad.checking.subject import CheckError

Function = Callable[..., Any]
World = dict[str, Any]
"""The values that forward and backward are called with, by name; an object with both is "self"."""

FORWARDS = ("forward", "__call__", "feedforward", "predict", "fprop", "query", "out")
BACKWARDS = ("backward", "backprop", "bprop", "backward_pass", "gradients", "gradient", "grad", "grads")
TRAININGS = (
    "train",
    "train_step",
    "train_batch",
    "fit_batch",
    "update",
    "step",
    "gradient_step",
    "sgd_step",
    "fit",
)
RATE = 0.01  # where an update takes a learning rate
BUFFERS = ("running", "moving", "momentum", "velocit")  # arrays that a step moves and no gradient


@dataclass
class Adapted:
    """Code as it is called.

    Attributes
    ----------
    world
        What it is called with.
    forward
        Runs it in a world.
    outputs
        The arrays to differentiate, among what forward returned.
    backward
        Runs it in forward's world, on what forward returned and the upstream gradients; returns all that may be a
        gradient, by path: what was "returned", what is "new" in the world, what was there before and is "kept", and by
        how much that is "moved".
    name
        What it is called in a report.
    matched
        From the path of each array to its gradient's.
    """

    world: World
    forward: Callable[[World], Any]
    outputs: Callable[[Any], list[Any]]
    backward: Callable[[World, Any, list[Any]], dict[Path, Any]]
    name: str
    matched: dict[Path, Path] = field(default_factory=dict)

    def pair(self) -> Pair:
        """Return two functions of arrays by name and the arrays: those that have a gradient, and the data."""
        data = [(name,) for name, value in self.world.items() if isinstance(value, np.ndarray)]
        paths = {show_path(path[1:] if path[0] == "self" else path): path for path in (*self.matched, *data)}

        def world_with(values: Mapping[str, Any]) -> World:
            world = copy.deepcopy(self.world)
            for name, path in paths.items():
                new, old = values[name], get(self.world, path)
                if type(new) is np.ndarray:  # an array of its own: what updates in place changes it
                    new = float(new) if isinstance(old, float) else new.copy().view(type(old))
                world = put(world, path, new)
            return world

        def forward(**values: Any) -> Any:
            with repeatable():
                outputs = self.outputs(self.forward(world_with(values)))
            return tuple(outputs) if len(outputs) > 1 else outputs[0]

        def backward(upstream: Any, **values: Any) -> dict[str, Any]:
            world = world_with(values)
            with repeatable():
                result = self.forward(world)
            parts = list(upstream) if isinstance(upstream, tuple | list) else [upstream]
            found = self.backward(
                world, result, parts
            )  # outside: what it draws itself differs from call to call
            names = {name: path for name, path in paths.items() if path in self.matched}
            return {name: _in_shape(found[self.matched[path]], values[name]) for name, path in names.items()}

        inputs = {name: np.asarray(get(self.world, path)) for name, path in paths.items()}
        return Pair(forward, backward, inputs, self.name)

    def match_gradients(self) -> Adapted:
        """Find out, at the example, which gradient belongs to which array."""
        with repeatable():
            world = copy.deepcopy(self.world)
            result = self.forward(world)
            generator = np.random.default_rng(0)
            upstream = [generator.normal(size=np.shape(part)) for part in self.outputs(result)]
            found = self.backward(world, result, upstream)
        every = arrays_in(self.world)
        moved = {path[1:] for path in found if path[0] == "moved" and np.any(found[path])}
        arrays = {_own(path): every[path] for path in every if not is_gradient(path, every)}
        long = {_own(path): path for path in every}
        rooms = [("kept", *path) for path in every if _own(path) not in arrays]
        for kind in ("returned", "new", "kept"):
            paths = rooms if kind == "kept" else [path for path in found if path[0] == kind]
            gradients = {_own(path[1:]): path for path in paths}
            free = {path: array for path, array in arrays.items() if long[path] not in self.matched}
            matches = match({short: found[path] for short, path in gradients.items()}, free)
            self.matched |= {long[array]: gradients[gradient] for array, gradient in matches.items()}
        names = {plain(path[-1]) for path in moved}
        for path in moved - self.matched.keys():
            if _own(path) in arrays and not _is_buffer(path, names):
                self.matched[path] = ("moved", *path)
        if not self.matched:
            raise CheckError(
                f"{self.name} returns no gradient, and leaves none: no array fits one of its inputs in name or shape",
                given=f"the inputs are {', '.join(map(show_path, arrays))}",
            )
        return self


@contextmanager
def repeatable() -> Iterator[None]:
    """Draw the same random numbers at each call, and leave the generators as they were."""
    states = np.random.get_state(), random.getstate()  # noqa: NPY002 - the user's code draws from these
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])


def _own(path: Path) -> Path:
    return path[1:] if path[:1] == ("self",) else path


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
    given: dict[str, Any] = {}
    for name, parameter in parameters_of(function).items():
        if name in world:
            given[name] = world[name]
        elif parameter.default is parameter.empty:
            raise CheckError(
                f"{function.__name__} takes {name!r}, and the inputs have no {name!r}",
                given=f"the inputs are {', '.join(str(each) for each in world if each != 'self') or 'none'}",
                fix=f'add it to the inputs: {{"{name}": …}}',
            )
    return function(**given)


def in_world(function: Function, world: World) -> Function:
    """Return a method of the world's object in place of the original's: each run has a copy of the object."""
    own = getattr(function, "__self__", None)
    return getattr(world["self"], function.__name__) if own is not None and "self" in world else function


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


# ------------------------------------------------------------------------------- the shapes people write


def adapt(forward: Function, backward: Function, world: World, loss: Function | None = None) -> Adapted:
    """Return a forward and a backward: functions, or methods of the world's "self".

    Where backward starts from a ``loss`` instead of an upstream gradient, the loss is a function of the world and of
    forward's results.
    """
    names, gradient_names = returned_names(forward), returned_names(backward)
    with repeatable():
        trial = call(in_world(forward, copied := copy.deepcopy(world)), copied)
    several = isinstance(trial, tuple) and len(trial) > 1
    roles = roles_of(backward, {*parameters_of(forward), *world}, names if several else [], saves=several)
    if loss is not None:  # what is neither target nor input is the prediction
        roles = [Role(role.parameter, "output", 0) if role.kind == "upstream" else role for role in roles]
    upstreams = sum(role.kind == "upstream" for role in roles)
    attribute = _gradient_attribute(backward, [role.parameter for role in roles if role.kind == "upstream"])

    def run_forward(world: World) -> Any:
        result = call(in_world(forward, world), world)
        if loss is None:
            return result, None
        known = by_returned_name(result, names)
        if not isinstance(known, dict):
            missing = next((name for name in parameters_of(loss) if name not in world), "")
            known = {missing: result[0] if several else result}
        return result, result if loss == forward else call(in_world(loss, world), {**world, **known})

    def outputs(run: Any) -> list[Any]:
        result, value = run
        if loss is not None:
            return [value]
        return list(result[: max(1, upstreams)]) if several else [result]

    def run_backward(world: World, run: Any, upstream: list[Any]) -> dict[Path, Any]:
        before = {path: np.array(value) for path, value in arrays_in(world).items()}
        given = {role.parameter: _value(role, world, run[0], upstream) for role in roles}
        if attribute:
            for role in roles:
                if role.kind == "upstream":
                    setattr(run[0], attribute, given[role.parameter])
                    given[role.parameter] = run[0]
        given = {name: value for name, value in given.items() if value is not _MISSING}
        returned = in_world(backward, world)(**given)
        rate = next((given[role.parameter] for role in roles if role.kind == "rate"), _rate_of(world))
        found = _gradients(world, before, by_returned_name(returned, gradient_names), rate)
        if upstreams:
            return found
        return {path: np.asarray(value) * upstream[0] for path, value in found.items()}

    return Adapted(world, run_forward, outputs, run_backward, backward.__name__).match_gradients()


_MISSING = object()  # of an argument that keeps its default


def _value(role: Role, world: World, result: Any, upstream: list[Any]) -> Any:
    match role.kind:
        case "argument":
            return world.get(role.which, _MISSING)
        case "output":
            return result[role.which] if isinstance(result, tuple) else result
        case "saved":
            return result[-1]
        case "rate":
            return RATE
        case "upstream":
            part = upstream[min(role.which, len(upstream) - 1)]
            return part[()] if np.ndim(part) == 0 else part


def _gradient_attribute(backward: Function, upstream: list[str]) -> str:
    """Return the attribute that holds gradients where arrays carry them: ``g`` of ``w.g = x.T @ y.g``."""
    definition = definition_of(backward)
    stores = [
        node.attr for node in (ast.walk(definition) if definition else ())
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_parameter(node.value, backward)
    ]  # fmt: skip
    return stores[0] if stores and upstream else ""


def _is_parameter(node: ast.expr, function: Function) -> bool:
    return isinstance(node, ast.Name) and node.id in parameters_of(function)


def _rate_of(world: World) -> float:
    """Return the learning rate of the world or its object, or 1."""
    known = {**world, **getattr(world.get("self"), "__dict__", {})}
    rates = (
        value for name, value in known.items() if plain(name) in RATES and isinstance(value, float | int)
    )
    return float(next(rates, 1.0))


def _gradients(world: World, before: Mapping[Path, Any], returned: Any, rate: float) -> dict[Path, Any]:
    """Return all that may be a gradient after a backward, by path."""
    found = {("returned", *path): value for path, value in arrays_in(returned).items()}
    for path, value in arrays_in(world).items():
        if path in before and np.shape(value) == before[path].shape:
            found[("kept", *path)] = value
            found[("moved", *path)] = (before[path] - np.asarray(value)) / rate
        else:
            found[("new", *path)] = value
    for name, value in world.items():  # x.g: an array that has attributes
        if isinstance(value, np.ndarray):
            found |= {("new", f"{name}_{key}"): item for key, item in getattr(value, "__dict__", {}).items()}
    return found


def adapt_loss(function: Function, world: World) -> Adapted:
    """Return a function that gives its loss and the gradients in one call."""
    names = returned_names(function)
    with repeatable():
        trial = call(in_world(function, copied := copy.deepcopy(world)), copied)
    numbers = (
        [k for k, part in enumerate(trial) if isinstance(part, float | np.floating)]
        if isinstance(trial, tuple)
        else []
    )
    if not numbers:
        raise CheckError(
            f"backward is missing, and {function.__name__} returns no loss with its gradients",
            fix="give the backward too, or a function that returns (loss, gradients)",
        )
    place = next((k for k in numbers if k < len(names) and is_loss_name(names[k])), numbers[0])

    def run_backward(world: World, result: Any, upstream: list[Any]) -> dict[Path, Any]:
        rest = result[:place] + result[place + 1 :]
        known = by_returned_name(rest, names[:place] + names[place + 1 :]) if len(rest) > 1 else rest[0]
        return {
            ("returned", *path): np.asarray(value) * upstream[0] for path, value in arrays_in(known).items()
        }

    def run_forward(world: World) -> Any:
        return call(in_world(function, world), world)

    return Adapted(
        world, run_forward, lambda result: [result[place]], run_backward, function.__name__
    ).match_gradients()


def adapt_object(owner: Any, inputs: Any, chosen: str = "") -> Adapted:
    """Return an object's forward and backward, found by the names of its methods; ``chosen`` is one of them."""
    methods = dict(inspect.getmembers(owner, inspect.ismethod))
    losses = [method for name, method in methods.items() if is_loss_name(name)]
    is_forward = chosen in FORWARDS
    forward = next((methods[name] for name in (chosen * is_forward, *FORWARDS) if name in methods), None)
    backward = next(
        (methods[n] for n in (chosen * (not is_forward), *BACKWARDS, *TRAININGS) if n in methods), None
    )
    first = next((method for method in (forward, *losses, backward) if method is not None), None)
    if first is None or (backward is None and not losses):
        raise CheckError(
            f"{type(owner).__name__} has no backward whose name is known",
            given=f"its methods are {', '.join(methods) or 'none'}",
            fix="give the method, as in check(net.my_backward, inputs=…)",
        )
    world = {**named(first, inputs), "self": owner}
    if backward is None or backward in losses:
        return adapt_loss(methods[chosen] if backward in losses else losses[0], world)
    if losses and (forward is None or not _takes_upstream(backward, forward, world)):
        runs = forward is not None and set(_required(forward)) <= set(world)
        return adapt(forward if runs and forward is not None else losses[0], backward, world, losses[0])
    if forward is None:
        raise CheckError(f"{type(owner).__name__} has no forward and no loss whose name is known")
    return adapt(forward, backward, world)


def _required(function: Function) -> list[str]:
    return [
        name for name, parameter in parameters_of(function).items() if parameter.default is parameter.empty
    ]


def _takes_upstream(backward: Function, forward: Function, world: World) -> bool:
    """Whether the backward of an object that has a loss too takes an upstream gradient, and not targets."""
    kinds = [role.kind for role in roles_of(backward, {*parameters_of(forward), *world}, [], saves=False)]
    return "upstream" in kinds and "argument" not in kinds
