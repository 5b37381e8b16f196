"""Gradients written by hand for other libraries, called on NumPy arrays.

They are a ``torch.autograd.Function``, JAX's functions with ``defvjp`` or ``defjvp``, jitted or not, and autograd's; and
modules and functions that call them. Each library differentiates the function with the rule that its author wrote.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.autograd_functions import autograd_library, has_autograd_rule
from handgrad.checking.interfaces.jax_functions import is_jax_function, jax_library
from handgrad.checking.interfaces.jax_on_numpy import unwrapped
from handgrad.checking.interfaces.own_objects import Pair, by_name
from handgrad.checking.interfaces.peer_function import Leaves, Library, as_list
from handgrad.checking.interfaces.tensors import in_float64, is_array, is_tensor, is_torch, like, to_numpy
from handgrad.checking.interfaces.torch_functions import is_module, torch_class, torch_library
from handgrad.checking.subject import CheckError, seeded


def is_peer(thing: Any) -> bool:
    """Whether it is another library's function with a gradient of its own; a library not yet imported has none."""
    if is_module(thing) and not hasattr(thing, "backward"):
        return True
    return torch_class(thing) is not None or is_jax_function(thing) or has_autograd_rule(thing)


def written_forward(thing: Any) -> Callable[..., Any]:
    """Return the forward that an author wrote for another library: with ``ctx``, for PyTorch; of a module, its method."""
    if (function := torch_class(thing)) is not None:
        forward: Callable[..., Any] = function.forward
        return forward
    found: Callable[..., Any] = thing.fun if has_autograd_rule(thing) else unwrapped(thing)
    if isinstance(found, FunctionType):
        return found
    method: Callable[..., Any] = type(thing).forward if is_module(thing) else type(thing).__call__
    return method


def differentiates_itself(function: Any, inputs: Any) -> bool:
    """Whether a plain function is one that PyTorch or JAX differentiates: it gives one tensor, or takes some to train."""
    return _differentiable(function, inputs) is not None


def _differentiable(function: Any, inputs: Any) -> Any:
    """Return the tensor that a plain function gives, or that it takes to train; None without one."""
    if not isinstance(function, FunctionType) or not ({"torch", "jax"} & sys.modules.keys()):
        return None
    given = draw_once(by_name(inspect.signature(function), inputs)) if inputs is not None else {}
    if not given.keys() <= inspect.signature(function).parameters.keys():
        return None
    values = given.values()
    trained = [value for value in values if is_torch(value) and value.requires_grad]
    if trained or not any(map(is_array, values)):
        return next(iter(trained), None)
    try:
        output = function(**given)
    except Exception:  # whatever the user's code raises is for the check of it to report
        return None
    return output if is_tensor(output) else None


def of_arrays(pair: Pair) -> Pair:
    """Return two functions of another library's arrays, and the inputs, as NumPy's; others as they are."""
    forward, backward, inputs = pair.forward, pair.backward, pair.inputs
    example = draw_once(inputs)
    if not any(map(is_tensor, example.values())):
        return pair

    def drawn(generator: np.random.Generator) -> dict[str, Any]:
        return _wide(inputs(generator))  # type: ignore[operator]

    def given(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: like(example[name], value) for name, value in values.items()}

    def run(**values: Any) -> Any:
        with in_float64():
            return _bare(forward(**given(values)))

    def run_backward(upstream: Any, **values: Any) -> Any:
        some = next(filter(is_tensor, example.values()))
        with in_float64():
            parts = [like(some, part) for part in as_list(upstream)]
            first = tuple(parts) if isinstance(upstream, tuple) else parts[0]
            return _bare(backward(first, **given(values)))

    run.__wrapped__, run_backward.__wrapped__ = forward, backward  # type: ignore[attr-defined]
    return Pair(run, run_backward, drawn if callable(inputs) else _wide(inputs), pair.name, given=given)


def _wide(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return tensors as arrays in float64: they are float32 unasked."""
    arrays = {name: to_numpy(value) for name, value in inputs.items()}
    wide = {n for n, v in inputs.items() if is_tensor(v) and arrays[n].dtype.kind == "f"}
    return {name: v.astype(np.float64) if name in wide else v for name, v in arrays.items()}


def with_surrogate(pair: Pair, surrogate: Callable[..., Any]) -> Pair:
    """Return a pair whose backward is compared with the derivative of another forward, of inputs of the same names."""

    def forward(**values: Any) -> Any:
        given = dict(pair.given(values))
        try:
            names = [name for name in inspect.signature(surrogate).parameters if name in given]
        except (TypeError, ValueError):  # a library's own function
            names = []
        with in_float64(), seeded():
            return _bare(
                surrogate(**{name: given[name] for name in names}) if names else surrogate(*given.values())
            )

    def backward(upstream: Any, **values: Any) -> Any:
        pair.forward(**{name: np.array(value) for name, value in values.items()})  # which may save something
        return pair.backward(upstream, **values)

    backward.__dict__.update(pair.backward.__dict__)
    example = {name: np.asarray(value) for name, value in draw_once(pair.inputs).items()}
    outputs, others = (list(map(np.shape, as_list(each(**example)))) for each in (pair.forward, forward))
    if outputs != others:
        raise CheckError(
            f"the surrogate returns {others}, and forward {outputs}", fix="return an array of the same shape"
        )
    limit = "backward was compared with the derivative of the surrogate, and not of forward"
    return replace(pair, forward=forward, backward=backward, limits=(*pair.limits, limit))


def _bare(value: Any) -> Any:
    """Return the arrays of tensors in a dictionary, a tuple or a list."""
    if isinstance(value, Mapping):
        return {name: to_numpy(item) for name, item in value.items()}
    return tuple(map(to_numpy, value)) if isinstance(value, tuple | list) else to_numpy(value)


def draw_once(source: Any) -> Mapping[str, Any]:
    """Return inputs, drawn where they are to be."""
    made: Mapping[str, Any] = source(np.random.default_rng(0)) if callable(source) else source
    return made


def peer_pair(thing: Any, inputs: Any) -> Pair:
    """Return another library's function as a forward and a backward."""
    name = getattr(torch_class(thing), "__name__", "") or getattr(thing, "__name__", type(thing).__name__)
    library = _library_of(thing, inputs)
    if inputs is None:
        wanted = ", ".join(f'"{each}": {each}' for each in library.signature.parameters)
        raise CheckError(
            f"{name}: the inputs are missing",
            fix=f"give your arrays as inputs={{{wanted}}}, or write in the file:\n{name}_inputs = {{{wanted}}}",
        )
    source = by_name(library.signature, inputs)
    arguments = _in_order(library.signature, draw_once(source))
    ways = list(library.ways(arguments))
    peer = next((way for way in ways if way.runs()), ways[0])  # what the plainest raises is reported

    def drawn(generator: np.random.Generator) -> Leaves:
        return peer.arrays_of(library.flat(_in_order(library.signature, source(generator))))  # type: ignore[operator]

    given = drawn if callable(source) else peer.arrays_of(library.flat(arguments))
    limits = tuple(peer.limits()) if peer.runs() else ()
    return Pair(*peer.functions(), given, name, limits, peer.given)


def _in_order(signature: inspect.Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments in the order of a function's parameters; what is left out between two has its default."""
    parameters = signature.parameters
    if not given.keys() <= parameters.keys():
        return dict(given)
    last = max((k for k, name in enumerate(parameters) if name in given), default=-1)
    found: dict[str, Any] = {}
    for name, parameter in list(parameters.items())[: last + 1]:
        value = given.get(name, () if parameter.kind is parameter.VAR_POSITIONAL else parameter.default)
        if value is parameter.empty:
            raise CheckError(f"the inputs have no {name!r}", fix=f'add it: {{"{name}": …}}')
        if parameter.kind is parameter.VAR_POSITIONAL:
            found |= {f"{name}[{k}]": item for k, item in enumerate(value)}
        else:
            found[name] = value
    return found


def _library_of(thing: Any, inputs: Any) -> Library:
    if torch_class(thing) is not None or is_module(thing):
        return torch_library(thing)
    if has_autograd_rule(thing):
        return autograd_library(thing)
    return torch_library(thing) if is_torch(_differentiable(thing, inputs)) else jax_library(thing)
