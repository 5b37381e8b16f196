"""PyTorch's derivative of a Function's forward in place of its backward: it shows whether a mistake is in that Function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from handgrad.checking.interfaces.peer_function import as_list
from handgrad.checking.interfaces.tensors import is_torch
from handgrad.checking.interfaces.torch_on_numpy import UnusedContext


def functions_in(outputs: Iterable[Any]) -> list[Any]:
    """Return the classes of the Functions that tensors were computed with, the last ones first."""
    found, seen = [], set()
    left = [output.grad_fn for output in outputs if is_torch(output)]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            found.append(getattr(type(node), "_forward_cls", None))
            left += [following for following, _ in node.next_functions]
    return [each for each in dict.fromkeys(found) if each is not None]


@contextmanager
def derived(functions: Iterable[Any]) -> Iterator[None]:
    """Let PyTorch differentiate the forward of some Functions as if they had no backward."""
    with ExitStack() as stack:
        for function in functions:
            for name, method in _methods(function).items():
                if name in vars(function):
                    stack.callback(setattr, function, name, vars(function)[name])
                else:
                    stack.callback(delattr, function, name)
                setattr(function, name, staticmethod(method))
        yield


def _methods(function: Any) -> dict[str, Callable[..., Any]]:
    """Return what saves a Function's arguments, and a backward that differentiates forward at them."""
    first = "setup_context" if "setup_context" in vars(function) else "forward"
    forward, saving = function.forward, getattr(function, first)

    def save(context: Any, *given: Any) -> Any:
        context.arguments_of_forward = given[0] if first == "setup_context" else given
        return saving(context, *given)

    def backward(context: Any, *upstream: Any) -> tuple[Any, ...]:
        torch: Any = sys.modules["torch"]  # which made the Functions
        with torch.enable_grad():
            given = [_variable(value) for value in context.arguments_of_forward]
            unused = () if first == "setup_context" else (UnusedContext(),)
            outputs = as_list(forward(*unused, *given))
            pairs = [
                pair
                for pair in zip(outputs, upstream, strict=True)
                if getattr(pair[0], "requires_grad", False)
            ]
            leaves = [value for value in given if is_torch(value) and value.requires_grad]
            ends, parts = [end for end, _ in pairs], [part for _, part in pairs]
            found = iter(torch.autograd.grad(ends, leaves, parts, allow_unused=True))
        return tuple(next(found) if is_torch(v) and v.requires_grad else None for v in given)

    return {first: save, "backward": backward}


def _variable(value: Any) -> Any:
    if not is_torch(value):
        return value
    return value.detach().requires_grad_(value.is_floating_point())
