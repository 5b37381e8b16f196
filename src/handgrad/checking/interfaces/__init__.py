"""Code in the shapes in which people write a backward pass, as two functions of arrays.

>>> import numpy as np
>>> from handgrad import check
>>> class Sigmoid:
...     def forward(self, x):
...         self.y = 1 / (1 + np.exp(-x))
...         return self.y
...     def backward(self, dy):
...         return dy * self.y * (1 - self.y)
>>> check(Sigmoid(), inputs={"x": np.array([0.5, -1.0])}).verdict
'right'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.derivatives import adapt_derivative, flag_of
from handgrad.checking.interfaces.roles import (
    SAVED,
    is_loss_name,
    parameters_of,
    plain,
    returned_names,
    roles_of,
)
from handgrad.checking.interfaces.scripts import adapt_script
from handgrad.checking.interfaces.user_code import Adapted, adapt, adapt_loss, adapt_object, named

__all__ = ["adapt_script", "is_plain_pair", "recognise"]

DERIVATIVES = ("prime", "deriv", "derivative", "grad", "gradient")


def is_plain_pair(forward: Any, backward: Any, inputs: Any) -> bool:
    """Whether two functions are of handgrad's own convention, ``backward(grad_output, **inputs)``, as far as names tell."""
    if backward is None:
        return type(forward).__module__ == "builtins" and not (inputs is not None and callable(forward))
    if not isinstance(inputs, Mapping) or not callable(forward) or not callable(backward):
        return True
    try:
        first, *rest = inspect.signature(backward).parameters.values()
    except (TypeError, ValueError):
        return True
    if any(
        parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) for parameter in (first, *rest)
    ):
        return True
    if first.name in inputs or any(
        isinstance(value, dict | list | tuple) and _nested(value) for value in inputs.values()
    ):
        return False
    if (
        isinstance(forward, FunctionType)
        and isinstance(backward, FunctionType)
        and _is_derivative(forward, backward)
    ):
        return False
    names = returned_names(forward) if isinstance(forward, FunctionType) else []
    saved = SAVED | set(names if len(names) > 1 else ())
    wanted = {parameter.name for parameter in rest} - set(inputs)
    return not any(name in saved or plain(name) in saved for name in wanted)


def _nested(value: Any) -> bool:
    """Whether a container holds arrays, rather than the numbers of one."""
    items = value.values() if isinstance(value, dict) else value
    return any(isinstance(item, np.ndarray | dict) for item in items)


def recognise(forward: Any, backward: Callable[..., Any] | None, inputs: Any) -> Adapted:
    """Return code as it stands as a forward and a backward of arrays.

    Parameters
    ----------
    forward
        An object with both functions as methods, one of its methods, or a function: one that returns its loss with
        the gradients, one whose flag asks for its derivative, or one that goes with ``backward``.
    backward
        The function that belongs to a function: of the upstream gradient and a cache, of forward's results by their
        names, or the derivative f'(x).
    inputs
        One example of how they are called: by name, or in order.
    """
    if isinstance(forward, MethodType):
        return adapt_object(forward.__self__, inputs, forward.__name__)
    if not isinstance(forward, FunctionType | BuiltinFunctionType):
        return adapt_object(forward, inputs)
    world = named(forward, inputs)
    if backward is None:
        return adapt_derivative(forward, forward, world) if flag_of(forward) else adapt_loss(forward, world)
    if _is_derivative(forward, backward):
        return adapt_derivative(forward, backward, world)
    return adapt(forward, backward, world, _loss_between(forward, backward, world))


def _is_derivative(forward: Callable[..., Any], backward: Callable[..., Any]) -> bool:
    """Whether a second function is the derivative of a first: its name and its parameters are made of the first's."""
    one, other = plain(forward.__name__), plain(backward.__name__)
    named = one in other and (other.startswith("d") or other.endswith(DERIVATIVES))
    return named and len(parameters_of(forward)) == len(parameters_of(backward))


def _loss_between(
    forward: Callable[..., Any], backward: Callable[..., Any], world: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """Return the loss from which a backward without an upstream gradient starts: a function of forward's results."""
    names = returned_names(forward)
    roles = roles_of(backward, {*parameters_of(forward), *world}, names, saves=len(names) > 1)
    if (
        any(role.kind == "upstream" for role in roles)
        or (names and is_loss_name(names[0]))
        or is_loss_name(forward.__name__)
    ):
        return None
    known = {*names, *world}
    return next(
        (
            value for name, value in forward.__globals__.items()
            if isinstance(value, FunctionType) and value.__module__ == forward.__module__ and is_loss_name(name)
            and set(parameters_of(value)) <= known and value not in (forward, backward)
        ),
        None,
    )  # fmt: skip
