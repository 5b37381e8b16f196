"""Other libraries' arrays as NumPy's, and back; a library that nobody has imported is not looked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from handgrad.checking.interfaces.on_numpy import TorchArray
from handgrad.checking.subject import Array


def is_torch(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: Any) -> bool:
    """Whether a value is an array of JAX's."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def is_tensor(value: Any) -> bool:
    """Whether a value is another library's array."""
    return is_torch(value) or is_jax(value)


def is_array(value: Any) -> bool:
    """Whether a value is an array, NumPy's or another library's."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def to_numpy(value: Any) -> Any:
    """Return a tensor as an array, and anything else as it is."""
    if isinstance(value, TorchArray):
        return value.array
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
    if is_torch(example):
        traces = not isinstance(value, np.ndarray | np.generic | float | int)
        return (
            TorchArray(value) if traces else sys.modules["torch"].from_numpy(narrow(value)).to(example.device)
        )
    return sys.modules["jax"].numpy.asarray(narrow(value)) if is_jax(example) else value


@contextmanager
def in_float64() -> Iterator[None]:
    """Make the other libraries compute in float64 where nothing else is asked for."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    with ExitStack() as stack:
        if torch is not None:
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float64)
        if jax is not None:
            of = jax if hasattr(jax, "enable_x64") else jax.experimental  # from which it has moved
            stack.enter_context(of.enable_x64(True))
        yield
