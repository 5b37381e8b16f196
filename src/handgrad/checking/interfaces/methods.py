"""Which methods of an object are its forward, its backward and its losses, by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from handgrad.checking.interfaces.names import is_derivative_name, is_loss_name, plain

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
    losses = [each for name, each in every.items() if is_loss_name(name) and not is_derivative_name(name)]
    forward = first(*[plain(chosen)] * is_forward, *FORWARDS)
    backward = first(*[plain(chosen)] * (bool(chosen) and not is_forward), *BACKWARDS, *TRAININGS)
    return Methods(forward, backward, tuple(losses), every)
