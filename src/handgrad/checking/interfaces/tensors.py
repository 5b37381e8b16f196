"""Tensors and plain lists of numbers as NumPy's arrays, and back; a library that nobody has imported is not looked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np

from handgrad.checking.interfaces.torch_on_numpy import TorchArray
from handgrad.checking.subject import Array


def is_torch(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: Any) -> bool:
    """Whether a value is an array of JAX's, and no key of its random numbers."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array) and not str(value.dtype).startswith("key<")


def is_tensor(value: Any) -> bool:
    """Whether a value is another library's array."""
    return is_torch(value) or is_jax(value)


def is_array(value: Any) -> bool:
    """Whether a value is an array, NumPy's or another library's."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def is_numbers(value: Any) -> bool:
    """Whether a value is an array in plain Python: a list of numbers, not all whole, or of lists of one length of them."""
    return any(isinstance(each, float | np.floating) for each in numbers_in(value))


def numbers_in(value: Any) -> list[Any]:
    """Return the numbers of a list, or of lists of one length; none where they hold anything else."""
    if type(value) is not list or not value:
        return []
    if all(type(each) is list and len(each) == len(value[0]) for each in value):
        rows = [numbers_in(each) for each in value]
        return [number for row in rows for number in row] if all(rows) else []
    plain = all(isinstance(each, float | int | np.floating) and not isinstance(each, bool) for each in value)
    return value if plain else []


def as_floats(value: Any) -> Any:
    """Return whole numbers, in an array or in lists of one length, as floating point, and anything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value.astype(float)
    return np.array(value, float).tolist() if numbers_in(value) else value


def is_array_like(value: Any) -> bool:
    """Whether a value is an array, or a list of numbers that is one in plain Python."""
    return is_array(value) or is_numbers(value)


def fill(numbers: list[Any], values: Any) -> list[Any]:
    """Put an array's entries into a list of its shape, in place: who holds the list, or a row of it, sees them."""
    entries = values.tolist() if type(values) is np.ndarray else values
    for k, each in enumerate(numbers):
        numbers[k] = fill(each, entries[k]) if type(each) is list else entries[k]
    return numbers


def to_numpy(value: Any) -> Any:
    """Return a tensor, or a list of numbers, as an array, and anything else as it is."""
    if isinstance(value, TorchArray):
        return value.array
    if type(value) is list and is_numbers(value):
        traces = any(not issubclass(type(each), float | int | np.number) for each in numbers_in(value))
        return np.stack([to_numpy(each) for each in value]) if traces else np.array(value)
    if is_torch(value):
        known = value.float() if value.dtype == sys.modules["torch"].bfloat16 else value
        return known.detach().cpu().numpy()
    return np.asarray(value) if is_jax(value) else value


def narrow(value: Any) -> Array:
    """Bring NumPy's widest type back to float64, the widest there is elsewhere."""
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype == np.longdouble else array


def like(example: Any, value: Any) -> Any:
    """Return an array as what an example is: a tensor on its device, or an array as it is; it shares its memory.

    What is no array of NumPy's, but traces one, takes a tensor's place.
    """
    if isinstance(example, list):
        return value.tolist() if isinstance(value, np.ndarray) else value
    traces = not issubclass(
        type(value), np.ndarray | np.generic | float | int
    )  # what traces claims to be an array
    if is_torch(example):
        if traces:
            return TorchArray(value)
        array = narrow(value)
        backwards = any(
            stride < 0 for stride in array.strides
        )  # torch has none, of an axis of one entry neither
        array = array.copy(order="C") if backwards or not array.flags.writeable else array
        return sys.modules["torch"].from_numpy(array).to(example.device)
    return sys.modules["jax"].numpy.asarray(narrow(value)) if is_jax(example) and not traces else value


def tensors_of(library: str, value: Any) -> Any:
    """Return arrays as tensors of a library, ``torch`` or ``jax``, also in containers; without one as they are."""
    if isinstance(value, dict):
        return {name: tensors_of(library, item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(tensors_of(library, item) for item in value)
    if not library or not isinstance(value, np.ndarray):
        return value
    if library == "torch":
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(value))
    return sys.modules["jax"].numpy.asarray(value)


def jax_in_float64(value: Any) -> Any:
    """Return a tree of what JAX computes with, with float32 as float64."""
    jax: Any = sys.modules["jax"]

    def wide(leaf: Any) -> Any:
        return jax.numpy.asarray(leaf, np.float64) if getattr(leaf, "dtype", None) == np.float32 else leaf

    return jax.tree.map(wide, value)


def without_history(values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the tensors that depend on others, which cannot be copied as they are, each with a copy that is a leaf."""
    for value in values:
        if isinstance(value, dict | list | tuple):
            yield from without_history(value.values() if isinstance(value, dict) else value)
        elif is_torch(value) and not value.is_leaf:
            yield value, value.detach().clone().requires_grad_()


def finish_imports() -> None:
    """Make the libraries import what they import late: an import that a time limit cuts off cannot be repeated."""
    if (torch := sys.modules.get("torch")) is not None:
        with torch.enable_grad():
            x = torch.ones(1, requires_grad=True)
            torch.autograd.grad((x * x).sum(), x)
    if (jax := sys.modules.get("jax")) is not None:
        jax.vjp(jax.numpy.sin, jax.numpy.ones(1))


@contextmanager
def in_float64(*, widen: bool = True) -> Iterator[None]:
    """Make the other libraries compute in float64 where nothing else is asked for; ``widen``: where float32 is, too."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    with ExitStack() as stack:
        if torch is not None:
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float64)
            if widen:
                stack.enter_context(_widening()())
        if jax is not None:
            of = jax if hasattr(jax, "enable_x64") else jax.experimental  # from which it has moved
            stack.enter_context(of.enable_x64(True))
        yield


@cache
def _widening() -> type[Any]:
    """Return what makes PyTorch's functions take float64 for float32."""
    torch: Any = sys.modules["torch"]
    mode: Any = torch.overrides.TorchFunctionMode

    def wide(value: Any) -> Any:
        return torch.float64 if value is torch.float32 else value

    class Widening(mode):  # type: ignore[misc]  # a library's that need not be there
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if called is torch.Tensor.float:
                called = torch.Tensor.double
            named = {name: wide(value) for name, value in (kwargs or {}).items()}
            return called(*map(wide, args), **named)

    return Widening
