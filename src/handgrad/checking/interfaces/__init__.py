"""What is given to a check, as two functions of arrays: handgrad's own objects, torch's and JAX's, anyone's code.

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
from types import FunctionType
from typing import Any

from handgrad.checking.interfaces.autograd_classes import operations_of
from handgrad.checking.interfaces.calling import globals_of
from handgrad.checking.interfaces.closures import Closures, class_of_closures, pullback_of, share_state
from handgrad.checking.interfaces.jax_functions import is_only_jitted
from handgrad.checking.interfaces.methods import (
    is_chain_name,
    losses_beside,
    methods_of,
    returns_loss_and_gradients,
    trains_alone,
)
from handgrad.checking.interfaces.names import SAVED, is_floating, is_upstream_name, names_of_array, plain
from handgrad.checking.interfaces.own_objects import Pair, by_name, own_pair
from handgrad.checking.interfaces.script_lines import has_gradients
from handgrad.checking.interfaces.script_training import script_steps
from handgrad.checking.interfaces.script_updates import has_update, line_of_update
from handgrad.checking.interfaces.scripts import adapt_script, is_training
from handgrad.checking.interfaces.signatures import returned_names
from handgrad.checking.interfaces.tensors import is_array
from handgrad.checking.interfaces.torch_and_jax import (
    differentiates_itself,
    is_peer,
    of_arrays,
    peer_pair,
    with_surrogate,
    written_forward,
)
from handgrad.checking.interfaces.two_functions import gradient_attribute
from handgrad.checking.interfaces.user_code import alias_of, flag_of, is_derivative, recognise
from handgrad.checking.subject import CheckError
from handgrad.layers import Layer
from handgrad.network import Network
from handgrad.rules import Rule

__all__ = [
    "Closures", "Pair", "adapt_script", "alias_of", "class_of_closures", "flag_of", "gradient_attribute", "has_backward",
    "has_gradients", "has_update", "is_chain_name", "is_only_jitted", "is_peer", "is_training", "line_of_update",
    "losses_beside", "methods_of", "operations_of", "pair_of", "pullback_of", "returns_loss_and_gradients", "script_steps",
    "trains_alone", "with_surrogate", "written_forward",
]  # fmt: skip


def has_backward(thing: Any) -> bool:
    """Whether a thing holds both its functions: a rule, a layer, a network, or another library's function."""
    return isinstance(thing, Rule | Layer | Network) or is_peer(thing)


def pair_of(forward: Any, backward: Callable[..., Any] | None, inputs: Any) -> Pair:
    """Return two functions of arrays, and the inputs to check them at, from what `handgrad.check` takes."""
    if has_backward(forward):
        if backward is not None:
            raise CheckError(
                f"{forward!r} has a backward of its own, and another is given", fix="give one of them"
            )
        return peer_pair(forward, inputs) if is_peer(forward) else own_pair(forward, inputs)
    if backward is None and differentiates_itself(forward, inputs):
        return peer_pair(forward, inputs)
    if not _is_plain(forward, backward, inputs):
        return recognise(forward, backward, inputs)
    for role, function in (("forward", forward), ("backward", backward)):
        if not callable(function):
            what = "is missing" if function is None else f"is {function!r:.60}, which is no function"
            raise CheckError(
                f"{role} {what}", fix="give forward, backward and inputs; or a rule, a layer, a network"
            )
    assert backward is not None
    if inputs is None:
        raise CheckError("the inputs are missing", fix='give a dict of arrays, {"x": x, "W": W}')
    try:
        signature = inspect.signature(forward)
    except ValueError:  # some of NumPy's functions have none
        signature = None
    given = by_name(signature, inputs)
    name = getattr(backward, "__name__", "backward")
    return of_arrays(Pair(forward, backward, given, name))


def _is_plain(forward: Any, backward: Any, inputs: Any) -> bool:
    """Whether two functions are of handgrad's own convention, ``backward(grad_output, **inputs)``, as far as names tell."""
    if share_state(forward, backward):
        return False
    if backward is None:
        return type(forward).__module__ == "builtins" and not (inputs is not None and callable(forward))
    if not isinstance(inputs, Mapping) or not callable(forward) or not callable(backward):
        return True
    try:
        first, *rest = inspect.signature(backward).parameters.values()
    except (TypeError, ValueError):
        return True
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in (first, *rest)):
        return True
    if first.name in [*inputs, *returned_names(forward)] or any(map(_holds_arrays, inputs.values())):
        return False
    names: list[str] = []
    if isinstance(forward, FunctionType):
        if globals_of(forward, backward):
            return False
        if isinstance(backward, FunctionType) and is_derivative(forward, backward):
            return False
        names = returned_names(forward)
        if {*names[1:]} & {*inputs}:
            return False  # an input that forward returns is a cache, and no output
    floating = [each for each in inputs.values() if is_floating(each)]
    given = returned_names(backward) if isinstance(backward, FunctionType) else []
    if len(given) < len(floating) and any(names_of_array((each,)) & {*map(plain, inputs)} for each in given):
        return False  # dW, db, and no dx: by their names
    wanted = {each.name for each in rest if each.default is each.empty} - set(inputs)
    if not is_upstream_name(first.name) and any(map(is_upstream_name, wanted)):
        return False
    return not (wanted and len(names) > 1) and not any(plain(name) in SAVED for name in wanted)


def _holds_arrays(value: Any) -> bool:
    """Whether a container holds arrays, rather than the numbers of one."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(is_array(item) or isinstance(item, dict) for item in items)
