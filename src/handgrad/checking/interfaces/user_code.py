"""A forward and a backward as people write them, as two functions of arrays by name."""

from __future__ import annotations

import ast
import functools
import operator
from contextlib import nullcontext
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.adapted_pair import Found, Run, adapt, left_by, rate_of
from handgrad.checking.interfaces.calling import (
    ALIASES,
    MODULE,
    Function,
    World,
    by_returned_name,
    call,
    globals_of,
    in_world,
    named,
    trial_of,
    variables_of,
)
from handgrad.checking.interfaces.implied_loss import OUTPUT, best_fitting, implied_losses
from handgrad.checking.interfaces.methods import methods_of, trains_alone
from handgrad.checking.interfaces.names import (
    DERIVATIVES,
    RATES,
    SAVED,
    SUFFIXES,
    Path,
    Role,
    arrays_in,
    definition_of,
    get,
    is_floating,
    is_gradient_name,
    is_loss_name,
    is_target,
    parameters_of,
    plain,
    required,
    returned_names,
    returned_values,
    roles_of,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.scripts import adapt_training, is_training
from handgrad.checking.interfaces.tensors import is_array, like, to_numpy
from handgrad.checking.subject import CheckError

FLAGS = (*DERIVATIVES, "derive", "diff", "dx")
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
        if isinstance(forward, FunctionType) and is_training(forward):
            return adapt_training(forward, world)
        if flag_of(forward):
            return _of_derivative(forward, forward, world)
        return _of_loss(forward, world | globals_of(forward, forward))
    if is_derivative(forward, backward):
        return _of_derivative(forward, backward, world)
    world |= globals_of(forward, backward)
    loss = _loss_between(forward, backward, world)
    target = _target_of(backward, forward, world) if loss is None else ""
    if target and (MODULE in world or _returns_arrays(forward, world)):
        return _of_implied_loss(forward, backward, world, target)
    return _of_two(forward, backward, world, loss)


def _returns_arrays(forward: Function, world: World) -> bool:
    """Whether a function returns arrays, and no loss among them."""
    result = trial_of(forward, world)
    parts = result if isinstance(result, tuple) else (result,)
    return all(np.size(to_numpy(part)) > 1 for part in parts if is_floating(part))


# ------------------------------------------------------------------------------- the shapes people write


def _of_two(forward: Function, backward: Function, world: World, loss: Function | None = None) -> Pair:
    """Return a forward and a backward, which starts from an upstream gradient or from a ``loss`` of forward's results."""
    names, gradient_names = _as_taken(returned_names(forward), backward), returned_names(backward)
    trial = trial_of(forward, world)
    several = isinstance(trial, tuple) and len(trial) > 1
    roles = roles_of(backward, {*parameters_of(forward), *world}, names if several else [], saves=several)
    nested = _nested_names(forward) if several else {}
    roles = [
        role._replace(kind="output", which=nested[role.parameter])
        if role.kind in ("upstream", "saved") and role.parameter in nested
        else role
        for role in roles
    ]
    if loss is not None:  # what is neither target nor input is the prediction
        roles = [role._replace(kind="output", which=0) if role.kind == "upstream" else role for role in roles]
    upstreams = [role.parameter for role in roles if role.kind == "upstream"]
    attribute = gradient_attribute(backward) if upstreams else ""
    carrier = upstream_of(backward) if not upstreams and loss is None else ()

    def run_forward(world: World) -> Run:
        result = call(forward, world)
        if loss is None:
            return list(result[: max(1, len(upstreams))]) if several else [result], result
        if loss == forward:
            return [result], result
        by_name = by_returned_name(result, names)
        implied = OUTPUT in parameters_of(loss)
        known = by_name if isinstance(by_name, dict) and not implied else {}
        taken = parameters_of(loss) if implied else required(loss)
        missing = next(
            (name for name in taken if name not in world | known), ""
        )  # yhat, where forward returns a
        known |= {missing: _output(result, world) if several else result} if missing else {}
        return [call(loss, {**world, **known})], result

    def run_backward(world: World, result: Any, upstream: list[Any], *, inside: bool = False) -> Found:
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
        rate = RATE if any(role.kind == "rate" for role in roles) else rate_of(world)
        found = left_by(world, before, by_returned_name(returned, gradient_names), rate)
        found |= {("inside", *path): value for path, value in arrays_in(variables).items()}
        if upstreams or carrier:
            return found
        shape = np.shape(to_numpy(upstream[0]))
        returned = (to_numpy(value) for (kind, *_), value in found.items() if kind == "returned")
        if np.prod(shape) > 1 and any(np.shape(value) != shape for value in returned):
            raise CheckError(
                f"{backward.__name__} takes no upstream gradient, and {forward.__name__} returns no loss",
                given=f"{forward.__name__} returns an array of shape {shape}",
                fix="give the method that computes the loss, which backward differentiates",
            )
        return _times(upstream[0], found)

    run_inside = functools.partial(run_backward, inside=True)
    return adapt(world, run_forward, run_backward, backward.__name__, run_inside=run_inside)


def _nested_names(forward: Function) -> dict[str, tuple[int, int]]:
    """Return the place of each value of the tuples that forward returns, by name: ``return y, (Q, K, P)``."""
    return {
        each.id: (k, place)
        for k, value in enumerate(returned_values(forward))
        if isinstance(value, ast.Tuple)
        for place, each in enumerate(value.elts)
        if isinstance(each, ast.Name) and plain(each.id) not in SAVED and not each.id.endswith("cache")
    }


def _as_taken(names: list[str], backward: Function) -> list[str]:
    """Return what forward returns under the names by which backward takes it, where it takes it in the same order."""
    taken = [name for name in parameters_of(backward) if name != "self"][: len(names)]
    others = [(one, other) for one, other in zip(names, taken, strict=False) if one != other]
    is_value = len(others) == 1 < len(taken) and not plain(others[0][1]).startswith(UPSTREAMS)
    return taken if len(taken) == len(names) and is_value else names


def _output(results: tuple[Any, ...], world: World) -> Any:
    """Return which of forward's results a loss compares: the last of a target's shape, or the first."""
    shapes = [np.shape(value) for name, value in world.items() if is_target((name,))]
    arrays = [each for each in results if is_array(each)]  # and no cache
    labelled = any(len(shape) == 1 for shape in shapes)  # the last activation is compared with its classes
    last = arrays[-1] if labelled and arrays and np.ndim(arrays[-1]) == 2 else results[0]
    return next((each for each in reversed(arrays) if np.shape(each) in shapes), last)


def _value(role: Role, world: World, result: Any, upstream: list[Any]) -> Any:
    match role.kind:
        case "argument":
            return world[role.which]
        case "output":
            which = role.which if isinstance(role.which, tuple) else (role.which,)
            return functools.reduce(operator.getitem, which, result) if isinstance(result, tuple) else result
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


def _of_loss(function: Function, world: World) -> Pair:
    """Return a function that gives its loss and the gradients in one call."""
    names, trial = returned_names(function), trial_of(function, world)
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
        known = by_returned_name(rest, names[:place] + names[place + 1 :]) if len(rest) > 1 else rest[0]
        if (
            isinstance(known, dict) and sum(map(is_gradient_name, known)) > 1
        ):  # the others are states, probabilities
            known = {name: value for name, value in known.items() if is_gradient_name(name)}
        return _times(upstream[0], {("returned", *path): value for path, value in arrays_in(known).items()})

    return adapt(world, run_forward, run_backward, function.__name__)


def _of_object(owner: Any, inputs: Any, chosen: str = "") -> Pair:
    """Return an object's forward and backward, found by the names of its methods; ``chosen`` is one of them."""
    forward, backward, every_loss, methods = methods_of(owner, chosen)
    losses = [each for each in every_loss if backward is None or _is_of_same_data(each, backward)]
    known = [method for method in (forward, *losses, backward) if method is not None]
    if not known or (backward is None and not losses):
        raise CheckError(
            f"{type(owner).__name__} has no backward whose name is known",
            given=f"its methods are {', '.join(methods) or 'none'}",
            fix="give the method, as in check(net.my_backward, inputs=…)",
        )
    called = [method for method in known if method.__name__ == chosen]
    world = {**named(_taking(inputs, [*called, *known]), inputs), "self": owner}
    if backward is not None and trains_alone(backward, forward, losses):
        return adapt_training(backward, world)
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


def _is_of_same_data(loss: Function, backward: Function) -> bool:
    """Whether a loss may be the one that a backward differentiates, and not that of all data, with other arguments."""
    taken, given = set(required(loss)) - {"self"}, set(parameters_of(backward)) - {"self"}
    return (
        not taken
        or not given
        or bool(taken & {*parameters_of(backward)})
        or any(is_target((each,)) for each in taken)
    )


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
    losses = implied_losses(target)
    return best_fitting((formula, _of_two(forward, backward, world, loss)) for formula, loss in losses)


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
        takes_known = set(required(value)) <= {*names, *world}
        if takes_known and is_loss_name(name) and value not in (forward, backward):
            return value
    return None


# --------------------------------------------------------------------------------- f(x) and its derivative


def is_derivative(forward: Function, backward: Function) -> bool:
    """Whether a second function is the derivative of a first: its name and its parameters are made of the first's.

    What returns several gradients is not: f'(x) is one.
    """
    one, other = plain(forward.__name__), plain(backward.__name__)
    related = one in other and (other.startswith("d") or other.endswith(DERIVATIVES))
    of_one = len(returned_names(backward)) < 2
    return related and of_one and len(parameters_of(forward)) == len(parameters_of(backward))


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
