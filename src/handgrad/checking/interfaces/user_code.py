"""A forward and a backward as people write them, as two functions of arrays by name."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.adapted_pair import Found, Run, adapt
from handgrad.checking.interfaces.calling import (
    ALIASES,
    MODULE,
    Function,
    World,
    by_returned_name,
    call,
    globals_of,
    named,
    trial_of,
    with_variables,
)
from handgrad.checking.interfaces.closures import Closures, pullback_of, share_state
from handgrad.checking.interfaces.implied_loss import (
    OUTPUT,
    agreeing,
    best_fitting,
    implied_losses,
    loss_written_in,
    losses_of_residual,
    most_agreeing,
    taking_output,
)
from handgrad.checking.interfaces.methods import losses_beside, methods_of, trains_alone
from handgrad.checking.interfaces.names import (
    DERIVATIVES,
    RATES,
    SAVED,
    UPSTREAMS,
    arrays_in,
    is_floating,
    is_gradient_name,
    is_loss_name,
    is_target,
    plain,
)
from handgrad.checking.interfaces.own_objects import Pair
from handgrad.checking.interfaces.scripts import adapt_training, is_training
from handgrad.checking.interfaces.signatures import (
    Role,
    definition_of,
    file_of,
    inner_names,
    parameters_of,
    required,
    returned_names,
    returns_residual,
    roles_of,
)
from handgrad.checking.interfaces.tensors import like, to_numpy
from handgrad.checking.interfaces.two_functions import as_taken, followed_by, of_two, times, update_after
from handgrad.checking.subject import CheckError

FLAGS = (*DERIVATIVES, "derive", "diff", "dx")
STEP = 1e-6  # of the central difference that tells f'(x) from f'(f(x))


def recognise(forward: Any, backward: Function | None, inputs: Any) -> Pair:
    """Return code as it stands as two functions of arrays: an object, one of its methods, or functions."""
    if isinstance(forward, MethodType):
        return _of_object(forward.__self__, inputs, forward.__name__)
    if not isinstance(forward, FunctionType | BuiltinFunctionType):
        return _of_object(forward, inputs)
    if share_state(forward, backward):
        return _of_object(Closures.of((forward, backward)), inputs)
    world = named(forward, inputs)
    if backward is None:
        if isinstance(forward, FunctionType) and is_training(forward):
            return adapt_training(forward, world)
        if flag_of(forward):
            return _of_derivative(forward, forward, world)
        if (place := pullback_of(forward)) is not None:
            return _of_pullback(forward, world, place)
        returned, given = (
            set(map(np.shape, arrays_in(each).values())) for each in (trial_of(forward, world), world)
        )
        return _of_loss(forward, world | globals_of(forward, forward, returned - given))
    if is_derivative(forward, backward):
        return _of_derivative(forward, backward, world)
    world = with_variables(world | globals_of(forward, backward), forward, backward)
    try:
        return _of_functions(forward, backward, world)
    except CheckError:
        if (update := update_after(backward)) is None:
            raise
    return _of_functions(forward, followed_by(backward, update), world)


def _of_functions(forward: Function, backward: Function, world: World) -> Pair:
    """Return a function and its backward, with the loss that it starts from where it takes no upstream gradient."""
    loss = _loss_between(forward, backward, world)
    target = _target_of(backward, forward, world) if loss is None else ""
    if target and (
        any(arrays_in(world[each]) for each in world.get(MODULE, ()) if each in world)
        or _returns_arrays(forward, world)
    ):
        return _of_implied_loss(forward, backward, world, target)
    return of_two(forward, backward, world, loss)


def _gives_loss(function: Function, world: World) -> bool:
    """Whether the first value that a function returns is called a loss, and is one number."""
    if not any(map(is_loss_name, returned_names(function)[:1])):
        return False
    result = trial_of(function, world)
    first = result[0] if isinstance(result, tuple) and result else result
    return is_floating(first) and np.size(to_numpy(first)) == 1


def _returns_arrays(forward: Function, world: World) -> bool:
    """Whether a function returns arrays, and no loss among them."""
    result = trial_of(forward, world)
    parts = result if isinstance(result, tuple) else (result,)
    return all(np.size(to_numpy(part)) > 1 for part in parts if is_floating(part))


# ------------------------------------------------------------------------------- the shapes people write


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

    inner = {k - (k > place): found for k, found in inner_names(function).items()}

    def run_backward(world: World, rest: Any, upstream: list[Any]) -> Found:
        others = names[:place] + names[place + 1 :]
        known = (
            by_returned_name(rest, others, inner) if len(rest) > 1 else by_returned_name(rest, [], inner)[0]
        )
        named = known if isinstance(known, dict) else {}
        called = {name: value for name, value in named.items() if name == "g" or is_gradient_name(name)}
        if len(arrays_in(called)) > 1:  # the others are states, probabilities
            known = called
        return times(upstream[0], {("returned", *path): value for path, value in arrays_in(known).items()})

    return adapt(world, run_forward, run_backward, function.__name__)


def _of_pullback(function: Function, world: World, place: int) -> Pair:
    """Return a function that gives, beside its results, the function that takes their upstream gradients back."""

    def run_forward(world: World) -> Run:
        result = call(function, world)
        outputs = (*result[:place], *result[place + 1 :])
        return [each for each in outputs if is_floating(each)], result[place]

    def run_backward(world: World, pullback: Any, upstream: list[Any]) -> Found:
        found = by_returned_name(pullback(*upstream), returned_names(pullback), inner_names(pullback))
        return {("returned", *path): value for path, value in arrays_in(found).items()}

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
    world = {**with_variables(named(_taking(inputs, [*called, *known]), inputs), *known), "self": owner}
    try:
        return _of_methods(forward, backward, losses, methods, world)
    except CheckError:
        if backward is None or (update := update_after(backward, methods)) is None:
            raise
    return _of_methods(forward, followed_by(backward, update), losses, methods, world)


def _of_methods(
    forward: Function | None,
    backward: Function | None,
    losses: list[Function],
    methods: Mapping[str, Function],
    world: World,
) -> Pair:
    """Return an object's methods as a pair: what trains alone, a loss with its gradients, or a forward and its backward."""
    owner = type(world["self"]).__name__
    if backward is not None and trains_alone(backward, forward, losses):
        return adapt_training(backward, world)
    if backward is None or backward in losses:
        return _of_loss(backward or losses[0], world)
    if losses and (forward is None or not _takes_upstream(backward, forward, world)):
        runs = forward is not None and set(required(forward)) <= set(world)
        problem = None
        for loss in losses:
            try:
                return of_two(forward if runs and forward is not None else loss, backward, world, loss)
            except CheckError as error:  # it may be of other data: of many sentences, and not of one
                problem = problem or error
        assert problem is not None
        target = _target_of(backward, forward, world) if forward is not None and runs else ""
        with suppress(CheckError):
            implied = _of_implied_loss(forward, backward, world, target) if target and forward else None
            if implied is not None and agreeing(implied)[0]:
                return implied
        raise problem
    if forward is None:
        raise CheckError(f"{owner} has no forward and no loss whose name is known")
    target = "" if _gives_loss(forward, world) else _target_of(backward, forward, world)
    if not losses and (pair := _of_loss_layer(forward, backward, world, methods)):
        return pair
    aliases = alias_of(forward, backward)
    world |= {ALIASES: aliases} if aliases and set(aliases.values()) <= set(world) else {}
    if losses:
        return of_two(forward, backward, world)
    held = "" if target or not _returns_arrays(forward, world) else _held_target(world["self"], backward)
    implied = None
    if target or held:
        implied = _of_implied_loss(forward, backward, world, target or held, held=bool(held))
    if implied is not None and agreeing(implied)[0]:
        return implied
    return _of_own_error(backward, world) or implied or of_two(forward, backward, world)


def _of_own_error(backward: Function, world: World) -> Pair | None:
    """Return a method that updates by an error it computes itself, if a loss of that error explains one of its steps."""
    if not is_training(backward):
        return None
    with suppress(CheckError):
        pair = adapt_training(backward, world)
        if agreeing(pair)[0]:
            return pair
    return None


def _of_loss_layer(
    forward: Function, backward: Function, world: World, methods: Mapping[str, Function]
) -> Pair | None:
    """Return a layer whose backward takes forward's targets, and as what looks like an upstream gradient the prediction.

    That is forward's argument, or what it has left in the object: which, the slopes tell, as with f'(f(x)). A forward
    that returns the loss of each row is averaged, as its other methods do, or summed.
    """
    data = [name for name in required(forward) if not is_target((name,))]
    targets = [name for name in required(forward) if is_target((name,))]
    roles = roles_of(backward, {*parameters_of(forward), *world}, [], saves=False)
    upstreams = [role.parameter for role in roles if role.kind == "upstream"]
    taken = [role.parameter for role in roles if role.kind == "argument" and is_target((role.parameter,))]
    if not (len(data) == len(targets) == len(taken) == len(upstreams) == 1):
        return None
    own = copy.deepcopy(world)
    result = np.asarray(to_numpy(call(forward, own)))
    others = {("self", f".{name}"): value for name, value in vars(own["self"]).items() if is_floating(value)}
    places = [(data[0],), *others]
    losses = [forward]
    if result.ndim:
        users = [
            ast.unparse(definition_of(each) or ast.Pass()) for each in methods.values() if each != forward
        ]
        said = [text for text in users if f"self.{forward.__name__}(" in text]
        means = [
            reduce for reduce in (np.mean, np.sum) if any(f"{reduce.__name__}(" in text for text in said)
        ]
        losses = [_reduced(reduce) for reduce in means or (np.mean, np.sum)]
    known = [{upstreams[0]: Role(upstreams[0], "place", place)} for place in places]
    readings = [(None, {}), *((loss, role) for loss in losses for role in known)]
    return most_agreeing(
        functools.partial(of_two, forward, backward, world, loss, role) for loss, role in readings
    )


def _reduced(reduce: Function) -> Function:
    return taking_output(lambda **values: reduce(values[OUTPUT]))


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
        and not plain(each).startswith(("out", "pred", "yhat", "prob", "logit"))  # which forward returned
    ]  # fmt: skip
    trains = any(is_target((each,)) for each in given)
    is_one = trains and len(wanted) == 1 == len(others) and wanted != others
    return {wanted[0]: others[0]} if is_one and not _reads_saved(wanted[0], forward, backward) else {}


def _reads_saved(name: str, forward: Function, backward: Function) -> bool:
    """Whether a backward reads the attribute in which forward saves its input: it takes no input by another name."""
    saved = {
        target.attr
        for node in ast.walk(definition_of(forward) or ast.Pass())
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == name
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    nodes = ast.walk(definition_of(backward) or ast.Pass())
    return any(isinstance(each, ast.Attribute) and each.attr in saved for each in nodes)


def _target_of(backward: Function, forward: Function, world: World) -> str:
    """Return the target that a backward takes instead of an upstream gradient, or ""."""
    roles = roles_of(backward, {*parameters_of(forward), *world}, [], saves=False)
    given = [role.parameter for role in roles if role.kind == "argument" and is_target((role.parameter,))]
    takes = any(plain(role.parameter).startswith(UPSTREAMS) for role in roles if role.kind == "upstream")
    return given[0] if given and not takes else ""


def _held_target(owner: Any, backward: Function) -> str:
    """Return the attribute that is the target of a backward without arguments, or ""."""
    return "" if parameters_of(backward) else next((name for name in vars(owner) if is_target((name,))), "")


def _of_implied_loss(
    forward: Function, backward: Function, world: World, target: str, *, held: bool = False
) -> Pair:
    """Return a network without a loss with the one that fits its gradients best, half the squared error where none does.

    The target is an argument or, where it is ``held``, an attribute of the network.
    """

    def of_attribute(loss: Function) -> Function:
        return taking_output(
            lambda **values: loss(**{OUTPUT: values[OUTPUT], target: getattr(values["self"], target)}), "self"
        )

    beside = [*_losses_of_prediction(backward, target)]

    def pairs() -> Iterator[tuple[str, Pair]]:
        whole = [*beside, *implied_losses(target)]
        residual = [*losses_of_residual()] if target in parameters_of(forward) else []
        for formula, loss in residual + whole if returns_residual(forward) else whole + residual:
            try:
                yield formula, of_two(forward, backward, world, of_attribute(loss) if held else loss)
            except CheckError as error:
                if error.__cause__ is not None:  # the author's code: the arguments are others
                    raise
                # else a logarithm of what is negative

    written = beside[0][0] if beside else loss_written_in(file_of(backward))
    return best_fitting(pairs(), written)


def _losses_of_prediction(backward: Function, target: str) -> Iterator[tuple[str, Function]]:
    """Yield the losses of a prediction and a target that a backward's file has, with their calls."""
    for name, value in losses_beside(backward).items():
        targets, others = (
            [each for each in required(value) if is_target((each,)) == wanted] for wanted in (True, False)
        )
        weights = {*others[1:]}  # of its rows
        if len(targets) == 1 and others and weights <= {*parameters_of(backward)}:
            places = {targets[0]: target, others[0]: OUTPUT}
            given = [places.get(each, each) for each in required(value)]
            loss = taking_output(_at_places(value, given), target, *weights)
            yield f"{name}({', '.join('output' if each == OUTPUT else each for each in given)})", loss


def _at_places(function: Function, names: list[str]) -> Function:
    return lambda **values: function(*(values[name] for name in names))


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
    names = as_taken(forward, backward, world)
    roles = roles_of(backward, {*parameters_of(forward), *world}, names, saves=len(names) > 1)
    is_loss = any(map(is_loss_name, [*names[:1], forward.__name__]))
    if is_loss or any(role.kind == "upstream" for role in roles):
        return None
    losses = [each for each in losses_beside(forward).values() if each not in (forward, backward)]
    unknown = {each: [name for name in required(each) if name not in {*names, *world}] for each in losses}
    exact = [each for each in losses if not unknown[each]]
    of_one = [each for each in losses if len(unknown[each]) == 1 and not is_target((unknown[each][0],))]
    starts = any(is_target((name,)) for name in parameters_of(backward))
    return next(iter(exact or (of_one if starts else ())), None)


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
        return times(upstream[0], {("returned",): at(world, result if in_output else world[variable])})

    name = getattr(derivative, "__name__", "derivative")
    pair = adapt(inputs, run_forward, run_backward, name, {(variable,): ("returned",)})
    if not in_output:
        return pair
    limit = (
        f"{name} was called as {name}({function.__name__}({variable})): given {variable} itself it is wrong"
    )
    return replace(pair, limits=(*pair.limits, limit))
