"""Gradients written by hand for other libraries, called on NumPy arrays: torch.autograd.Function, jax.custom_vjp."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.checking.interfaces.on_numpy import jax_on_numpy, torch_on_numpy
from handgrad.checking.subject import Array


def is_peer(thing: Any) -> bool:
    """Whether it is another library's function with a gradient of its own; a library not yet imported has none."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(thing, type):
        return issubclass(thing, torch.autograd.Function)
    return jax is not None and isinstance(thing, jax.custom_vjp)


def peer_pair(thing: Any) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return another library's function as forward, backward, and a function with the parameters' names."""
    if isinstance(thing, type):
        return _torch_pair(thing)
    return _jax_pair(thing)


def _torch_pair(function: Any) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Call a torch.autograd.Function in the precision of its inputs, float64 at most."""
    import torch

    def forward(**values: Array) -> Any:
        output = function.apply(*_tensors(values).values())
        if isinstance(output, tuple):
            return tuple(part.detach().numpy() for part in output)
        return output.detach().numpy()

    def backward(upstream: Any, **values: Array) -> dict[str, Array]:
        given = _tensors(values)
        wanted = [name for name, v in given.items() if torch.is_tensor(v) and v.requires_grad]
        outputs = _all(function.apply(*given.values()))
        upstreams = [torch.from_numpy(_narrow(part)) for part in _all(upstream)]
        try:
            chosen = [given[name] for name in wanted]
            found = torch.autograd.grad(outputs, chosen, upstreams, allow_unused=True)
        except RuntimeError as error:
            if "invalid gradient" not in str(error):
                raise
            # the shape is wrong, which torch refuses: what backward returned is judged as it is
            returned = _all(function.backward(outputs[0].grad_fn, *upstreams))
            found = tuple(v for name, v in zip(given, returned, strict=False) if name in wanted)
        pairs = zip(wanted, found, strict=True)
        return {name: gradient.detach().numpy() for name, gradient in pairs if gradient is not None}

    forward.on_numpy = torch_on_numpy(function)  # type: ignore[attr-defined]
    return forward, backward, _without_context(function)


def _tensors(values: dict[str, Array]) -> dict[str, Any]:
    """Return tensors that share the arrays' memory, so that a change in place is seen; flags stay numbers."""
    import torch

    narrow = {name: _narrow(value) for name, value in values.items()}
    return {
        name: torch.from_numpy(v).requires_grad_(v.dtype.kind == "f")
        if v.ndim or v.dtype.kind == "f"
        else v.item()
        for name, v in narrow.items()
    }


def _all(output: Any) -> tuple[Any, ...]:
    """Return what a function gave as a tuple, one or several."""
    return output if isinstance(output, tuple) else (output,)


def _without_context(function: Any) -> Callable[..., Any]:
    """Return a function with the parameters of a torch Function's apply."""

    def named(*arguments: Any) -> None: ...

    parameters = list(inspect.signature(function.forward).parameters.values())
    separate = "setup_context" in vars(function)
    named.__signature__ = inspect.Signature(parameters if separate else parameters[1:])  # type: ignore[attr-defined]
    return named


def _jax_pair(function: Any) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Call a JAX function with a custom VJP in float64."""
    import jax

    name = "enable_x64"  # it has moved out of jax.experimental
    wide = getattr(jax, name) if hasattr(jax, name) else getattr(jax.experimental, name)

    def forward(**values: Array) -> Any:
        with wide(True):
            output = function(*map(_narrow, values.values()))
        return tuple(map(np.asarray, output)) if isinstance(output, tuple | list) else np.asarray(output)

    def backward(upstream: Any, **values: Array) -> dict[str, Array]:
        with wide(True):
            output, pull = jax.vjp(function, *map(_narrow, values.values()))
            leaves, tree = jax.tree_util.tree_flatten(output)
            upstreams = upstream if isinstance(upstream, tuple) else (upstream,)
            cast = [jax.numpy.asarray(_narrow(u), o.dtype) for u, o in zip(upstreams, leaves, strict=True)]
            found = pull(jax.tree_util.tree_unflatten(tree, cast))
        pairs = zip(values.items(), found, strict=True)
        return {name: np.asarray(gradient) for (name, v), gradient in pairs if v.dtype.kind == "f"}

    forward.on_numpy = jax_on_numpy(function)  # type: ignore[attr-defined]
    return forward, backward, function.fun


def _narrow(value: Any) -> Array:
    """Bring NumPy's widest type back to float64, the widest there is elsewhere."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype == np.longdouble else array
