"""Which methods of an object are its forward, its backward and its losses, by their names."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from handgrad.checking.interfaces.closures import Closures
from handgrad.checking.interfaces.names import (
    DERIVATIVES,
    FORWARD_WORDS,
    is_derivative_name,
    is_gradient_name,
    is_loss_name,
    plain,
    words_of,
)
from handgrad.checking.interfaces.scripts import is_training, makes_state
from handgrad.checking.interfaces.signatures import (
    definition_of,
    parameters_of,
    required,
    returned_values,
    returns_residual,
)

Function = Callable[..., Any]

FORWARDS = (
    "forward", "call", "feedforward", "forwardpass", "forwardpropagation", "forwardpropagate", "forwardprop", "fprop",
    "propagateforward", "forwardpropogation", "predict", "query", "out", "think", "activate", "evaluate", "apply", "fn", "f",
    "func", "function", "activation", "compute", "calculate", "propagate", "value", "run", "vorwaerts", "vorwärts",
    "propager", "avant", "propagar", "adelante",
)  # fmt: skip
BACKWARDS = (
    "backward", "backprop", "bprop", "backwardpass", "backpropagation", "backwardpropagation", "backpropagate",
    "backwardpropagate", "backwardprop", "propagatebackward", "backpropogate", "backpropogation", "gradients", "gradient",
    "grad", "grads", "computegradients", "computegradient", "calculategradients", "getgradients", "computegrad",
    "inputgradient", "bptt", "derivative", "deriv", "prime", "derivate", "df", "dfn", "gradienten", "gradientes",
    "rueckwaerts", "rückwärts", "retropropager", "retropropagation", "arriere", "retropropagar", "retropropagacion", "atras",
)  # fmt: skip
TRAININGS = (
    "train", "trainstep", "trainbatch", "trainonbatch", "fitbatch", "update", "step", "gradientstep", "sgdstep", "learn",
    "fit", "optimize", "trainonce", "partialfit", "updateweights", "gradientdescent", "trainnetwork", "trainieren", "lernen",
    "entrainer", "entrenar", "aprender",
)  # fmt: skip


CHAIN_WORDS = {
    "backward", "backwards", "bwd", "backprop", "backpropagation", "backpropagate", "bprop", "gradients", "grads",
}  # fmt: skip
NO_CHAIN = {
    "zero", "check", "numerical", "numeric", "clip", "apply", "update", "print", "clear", "reset", "plot", "init",
}  # fmt: skip


class Methods(NamedTuple):
    """The methods of an object that a check calls."""

    forward: Function | None
    backward: Function | None
    losses: tuple[Function, ...]
    every: dict[str, Function]


def methods_of(owner: Any, chosen: str = "") -> Methods:
    """Return the methods of an object or a class; ``chosen`` is one that is named by the user."""
    every = _every_method(owner)
    by_name = {plain(name): method for name, method in reversed(every.items())}

    def first(*names: str) -> Function | None:
        return next((by_name[name] for name in names if name in by_name), None)

    is_forward = plain(chosen) in FORWARDS
    losses = [
        each for name, each in every.items()
        if _is_loss(name, each)
        or (plain(name) not in BACKWARDS and returns_loss_and_gradients(each))
    ]  # fmt: skip
    forward = first(*[plain(chosen)] * is_forward, *FORWARDS)
    named = first(*[plain(chosen)] * (bool(chosen) and not is_forward), *BACKWARDS)
    both = next((each for each in losses if returns_loss_and_gradients(each)), None)
    named = named or both or _worded(every, CHAIN_WORDS)
    pair = None if named else _with_derivative(by_name)
    if pair is not None:
        return Methods(*pair, (), every)
    forward = forward or _worded(every, FORWARD_WORDS, named)
    training = [by_name[name] for name in TRAININGS if name in by_name]
    by_lines = (each for each in (*training, *every.values()) if each not in losses and is_training(each))
    backward = named or next(by_lines, None) or first(*TRAININGS)
    if backward is None:
        others = {name: each for name, each in every.items() if each not in losses}
        forward, backward = _by_attributes(others, forward)
    if forward is None and backward in training and not is_training(backward):
        runs = ((_run_first(each, every), each) for each in training)
        forward, backward = next(((one, each) for one, each in runs if one is not None), (None, backward))
    if backward is not None and trains_alone(backward, forward, losses):
        return Methods(None, backward, (), every)
    return Methods(forward, backward, tuple(losses), every)


def _is_loss(name: str, method: Function) -> bool:
    """Whether a method computes a loss, by its name: it takes none, as ``addError`` does, and is no ``error`` by itself."""
    is_error = "error" in plain(name) and returns_residual(method)
    takes = {"add", "set"} & {*words_of(name)}
    return is_loss_name(name) and not (is_derivative_name(name) or takes or is_error)


def losses_beside(function: Function) -> dict[str, FunctionType]:
    """Return the losses that are functions of a function's module, by name: no derivatives, and no backwards."""
    function = getattr(function, "__func__", function)
    return {
        name: value
        for name, value in getattr(function, "__globals__", {}).items()
        if isinstance(value, FunctionType) and value.__module__ == function.__module__
        if is_loss_name(name)
        and not is_derivative_name(name)
        and "back" not in plain(name)
        and not is_chain_name(name)
    }


def _every_method(owner: Any) -> dict[str, Function]:
    cls = owner if isinstance(owner, type) else type(owner)
    if issubclass(cls, Closures):
        return dict(cls.unbound) if owner is cls else owner.functions()
    kinds = inspect.getmembers(cls, lambda value: isinstance(value, FunctionType))
    return {
        name: getattr(owner, name) for name, _ in kinds if not name.startswith("__") or name == "__call__"
    }


def _run_first(training: Function, methods: Mapping[str, Function]) -> Function | None:
    """Return the method whose result a training keeps first, of what it is given: ``out = self.process(x)``."""
    definition, given = definition_of(training), parameters_of(training)
    for each in ast.walk(definition) if definition is not None else ():
        match each:
            case ast.Assign(value=ast.Call(ast.Attribute(ast.Name("self"), name), [ast.Name(x), *_])) if (
                x in given
            ):
                return methods.get(name)
    return None


def is_chain_name(name: str) -> bool:
    """Whether a name says that a function carries gradients back: ``backprop``, ``backPropagate``, and not ``zero_grads``."""
    words = {*words_of(name)}
    is_back = "back" in words and any(each.startswith("prop") for each in words)
    return (is_back or bool(words & CHAIN_WORDS)) and not words & NO_CHAIN


def _worded(
    methods: Mapping[str, Function], words: set[str], partner: Function | None = None
) -> Function | None:
    """Return the method of whose name's words one is among these, the one that shares the others with its partner's."""
    fits = [name for name in methods if words & {*words_of(name)} and not NO_CHAIN & {*words_of(name)}]
    others = {*words_of(getattr(partner, "__name__", ""))}
    return methods[max(fits, key=lambda name: len(others & {*words_of(name)}))] if fits else None


def _with_derivative(by_name: Mapping[str, Function]) -> tuple[Function, Function] | None:
    """Return the first method beside which there is one of its name with a word for derivative: nlml, nlml_grad.

    It computes with what the object holds; a sigmoid that does not is a part of the network.
    """
    for name, method in by_name.items():
        found = (by_name.get(f"{name}{word}") for word in DERIVATIVES)
        derivative = next((each for each in found if each is not None), None)
        tree = definition_of(method) if derivative is not None else None
        if (
            derivative is not None
            and tree is not None
            and any(
                isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
                for each in ast.walk(tree)
            )
        ):
            return method, derivative
    return None


def _by_attributes(
    methods: Mapping[str, Function], forward: Function | None
) -> tuple[Function | None, Function | None]:
    """Return a forward and its backward, in any language: this one reads what the other has saved, and makes gradients.

    Where no name says so, it is the one that reads what is saved and takes a single argument.
    """
    trees = {name: definition_of(method) or ast.Pass() for name, method in methods.items()}
    stored, read = ({name: {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)
                            and isinstance(each.ctx, context)} for name, tree in trees.items()}
                    for context in (ast.Store, ast.Load))  # fmt: skip
    taken = {name: [each for each in required(method) if each != "self"] for name, method in methods.items()}
    pairs = [
        (one, other) for one, other in itertools.permutations(methods, 2)
        if taken[one] and returned_values(methods[one]) and forward in (None, methods[one])
        and stored[one] & read[other] and len(taken[other]) == 1
    ]  # fmt: skip
    pairs.sort(key=lambda pair: not any(map(is_gradient_name, stored[pair[1]])))
    for one, other in pairs:
        if any(map(is_gradient_name, stored[other])) or returned_values(methods[other]):
            return methods[one], methods[other]
    return forward, None


SUMS = ("float(", "np.sum(", "np.mean(")  # of which a loss is one, and the gradient of a bias another


def trains_alone(method: Function, forward: Function | None, losses: Sequence[Function]) -> bool:
    """Whether a method that trains needs no others: there is no forward, or it makes the state anew that forward reads."""
    if plain(method.__name__) in BACKWARDS or method in losses or not is_training(method):
        return False
    return (forward is None and not losses) or makes_state(method, forward)


def returns_loss_and_gradients(function: Callable[..., Any]) -> bool:
    """Whether a function's last ``return`` gives a loss and something that is called a gradient."""
    values = returned_values(function)
    if len(values) < 2:
        return False
    texts = [ast.unparse(value) for value in values]
    said = is_loss_name(function.__name__) or "grad" in plain(function.__name__)
    code = function.__code__
    losses = [
        text
        for text in texts
        if (is_loss_name(text) and not _is_gradient_text(text))
        or (
            (text.startswith(SUMS) and not _is_gradient_text(text.partition("(")[2]))
            and not (text != texts[0] and is_derivative_name(function.__name__))
        )  # of a bias
    ]
    first_is_gradient, second_is = map(_is_gradient_text, texts[:2])
    summed = re.search(r"\b(sum|mean)\(", texts[0]) is not None
    if said and not losses and (summed or (second_is and not first_is_gradient)):
        losses = texts[:1]
    rest = [text for text in texts if text not in losses]
    named = {f"d{name}" for name in (*code.co_names, *code.co_varnames)}  # dtable, where there is a table
    gradients = [text for text in rest if _is_gradient_text(text) or text.replace("_", "") in named]
    unnamed = [value for value in values if isinstance(value, ast.Tuple | ast.List | ast.Dict)]
    alone = said and len(rest) == 1 and not rest[0].startswith(("cache", "prob", "score"))
    return bool(losses) and bool(gradients or unnamed or alone)


def _is_gradient_text(text: str) -> bool:
    bare = text.lstrip("([{'\"")
    return (
        bare == "g"
        or bare.lower().startswith(("grad", "nabla", "delta", "dict(d"))
        or re.match(r"d_?([A-Z]|\w{1,3}\b)", bare) is not None
    )
