"""Which methods of an object are its forward, its backward and its losses, by their names."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from handgrad.checking.interfaces.names import is_derivative_name, is_loss_name, plain, returned_values
from handgrad.checking.interfaces.scripts import is_training, makes_state

Function = Callable[..., Any]

FORWARDS = (
    "forward", "call", "feedforward", "forwardpass", "forwardpropagation", "forwardpropagate", "forwardprop", "fprop",
    "propagateforward", "forwardpropogation", "predict", "query", "out", "think", "activate", "evaluate", "apply", "fn", "f",
    "func", "function", "activation", "compute", "calculate", "propagate", "value", "run",
)  # fmt: skip
BACKWARDS = (
    "backward", "backprop", "bprop", "backwardpass", "backpropagation", "backwardpropagation", "backpropagate",
    "backwardpropagate", "backwardprop", "propagatebackward", "backpropogate", "backpropogation", "gradients", "gradient",
    "grad", "grads", "computegradients", "computegradient", "calculategradients", "getgradients", "computegrad",
    "inputgradient", "derivative", "deriv", "prime", "derivate", "df", "dfn",
)  # fmt: skip
TRAININGS = (
    "train", "trainstep", "trainbatch", "trainonbatch", "fitbatch", "update", "step", "gradientstep", "sgdstep", "learn",
    "fit", "optimize", "trainonce", "partialfit", "updateweights", "gradientdescent", "trainnetwork",
)  # fmt: skip


class Methods(NamedTuple):
    """The methods of an object that a check calls."""

    forward: Function | None
    backward: Function | None
    losses: tuple[Function, ...]
    every: dict[str, Function]


def methods_of(owner: Any, chosen: str = "") -> Methods:
    """Return the methods of an object or a class; ``chosen`` is one that is named by the user."""
    cls = owner if isinstance(owner, type) else type(owner)
    kinds = inspect.getmembers(cls, lambda value: isinstance(value, FunctionType))
    every = {
        name: getattr(owner, name) for name, _ in kinds if not name.startswith("__") or name == "__call__"
    }
    by_name = {plain(name): method for name, method in reversed(every.items())}

    def first(*names: str) -> Function | None:
        return next((by_name[name] for name in names if name in by_name), None)

    is_forward = plain(chosen) in FORWARDS
    losses = [
        each for name, each in every.items()
        if (is_loss_name(name) and not is_derivative_name(name))
        or (plain(name) not in BACKWARDS and returns_loss_and_gradients(each))
    ]  # fmt: skip
    forward = first(*[plain(chosen)] * is_forward, *FORWARDS)
    named = first(*[plain(chosen)] * (bool(chosen) and not is_forward), *BACKWARDS)
    both = next((each for each in losses if returns_loss_and_gradients(each)), None)
    training = [by_name[name] for name in TRAININGS if name in by_name]
    by_lines = (each for each in (*training, *every.values()) if each not in losses and is_training(each))
    backward = named or both or next(by_lines, None) or first(*TRAININGS)
    if backward is not None and trains_alone(backward, forward, losses):
        return Methods(None, backward, (), every)
    return Methods(forward, backward, tuple(losses), every)


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
        or (text.startswith(SUMS) and not _is_gradient_text(text.partition("(")[2]))
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
        bare.lower().startswith(("grad", "nabla", "delta", "dict(d"))
        or re.match(r"d_?([A-Z]|\w{1,3}\b)", bare) is not None
    )
