"""Forwards written for PyTorch, run on NumPy's arrays, so that they can be traced.

A forward is called as it is, on arrays that answer torch's functions with NumPy's (the ``__torch_function__``
protocol). Where that does not work, only the diagnosis by a trace is lost; the verdict never rests on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces.numpy_counterparts import (
    ALONG_AXIS,
    FUNCTIONS,
    OPERATORS,
    Extremes,
    unpacked,
)

RENAMED = {
    "dim": "axis", "keepdim": "keepdims", "negative_slope": "slope", "num_classes": "classes", "src": "values",
    "source": "values", "dims": "axis", "dim1": "axis1", "dim2": "axis2", "normalized_shape": "shape",
}  # fmt: skip
IDLE = ("inplace", "dtype", "device", "out", "_stacklevel", "layout", "memory_format", "generator")
"""Options that change no numbers."""

COUNTS: dict[str, Callable[..., Any]] = {
    "size": lambda array, axis=None: array.shape if axis is None else array.shape[axis],
    "dim": np.ndim,
    "numel": np.size,
    "nelement": np.size,
    "item": lambda array: array.item(),
    "new_zeros": lambda array, *shape, **_: TorchArray(np.zeros(unpacked(shape))),
    "new_ones": lambda array, *shape, **_: TorchArray(np.ones(unpacked(shape))),
    "new_full": lambda array, shape, value, **_: TorchArray(np.full(tuple(shape), value)),
    "is_floating_point": lambda array: array.dtype.kind == "f",
    "is_contiguous": lambda array: True,
    "numpy": lambda array: array,
    "tolist": lambda array: array.tolist(),
}


def torch_on_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a torch Function's forward on NumPy's arrays, or None when its source is out of reach."""
    start = getattr(function, "forward", None)
    if not isinstance(start, FunctionType):
        return None
    context = () if "setup_context" in vars(function) else (UnusedContext(),)

    def forward(*values: Any) -> Any:
        return _bare(start(*context, *(TorchArray(v) if hasattr(v, "dtype") else v for v in values)))

    forward.__wrapped__ = start  # type: ignore[attr-defined]
    return forward


class UnusedContext:
    """What a Function's forward saves things in: none of it is needed."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


class TorchArray:
    """An array that torch's functions take for a tensor; it has a tensor's operators and methods."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @classmethod
    def __torch_function__(cls, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a function of torch's."""
        return _call(called.__name__.strip("_"), *args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim"):
            return getattr(self.array, name)
        if name in ("T", "mT"):
            return TorchArray(np.swapaxes(self.array, -1, -2))
        if name == "dtype":
            return getattr(sys.modules["torch"], str(self.array.dtype), None)
        if name in ("device", "requires_grad", "is_cuda"):
            return None
        if name == "data":
            return self
        if name in COUNTS:
            return partial(COUNTS[name], self.array)
        if name in FUNCTIONS:
            return partial(_call, name, self)
        if name.endswith("_") and name[:-1] in FUNCTIONS:
            return partial(self._change, name[:-1])
        raise AttributeError(f"Tensor.{name} has no function of NumPy's")

    def _change(self, name: str, *args: Any, **options: Any) -> TorchArray:
        """Call a method that works in place."""
        self.array[...] = _call(name, self, *args, **options).array
        return self

    def __getitem__(self, key: Any) -> TorchArray:
        return TorchArray(self.array[_bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[_bare(key)] = _bare(value)

    def __len__(self) -> int:
        return len(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)


def _bare(value: Any) -> Any:
    """Return the array of a tensor, ours or torch's own, or of each in a tuple or list."""
    if isinstance(value, TorchArray):
        return value.array
    if type(value) in (tuple, list):
        return type(value)(map(_bare, value))
    return value.numpy() if isinstance(value, sys.modules["torch"].Tensor) else value


def _call(name: str, *args: Any, **options: Any) -> Any:
    """Call NumPy's function of a name of torch's: ``dim`` is the axis, and may be given by position."""
    given = {
        key: value for key, value in options.items() if value is not None
    }  # which is a default everywhere
    given = {key: _bare(value) for key, value in given.items() if key not in IDLE or value is True}
    renamed = {RENAMED.get(key, key): value for key, value in given.items()}
    plain = [_bare(arg) for arg in args]
    for key in ("axis", "keepdims") if name in ALONG_AXIS else ():
        if len(plain) > 1:
            renamed[key] = plain.pop(1)
    found = FUNCTIONS[name](*plain, **renamed)
    if isinstance(found, Extremes):
        return Extremes(*map(TorchArray, found))
    return tuple(map(TorchArray, found)) if isinstance(found, tuple) else TorchArray(found)


for _name in OPERATORS:
    setattr(TorchArray, f"__{_name}__", lambda *operands, name=_name: _call(name, *operands))
    setattr(TorchArray, f"__r{_name}__", lambda a, b, name=_name: _call(name, b, a))
