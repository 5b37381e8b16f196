"""Forwards written for JAX or torch, run on NumPy's arrays so that they can be recorded.

The user's functions get their library's names bound to NumPy's functions of the same meaning. Where that does not
work, nothing is lost but the diagnosis by planted mistakes; the verdict never rests on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _silu(x: Any) -> Any:
    return x * _sigmoid(x)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    largest = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis=axis)


def _log_softmax(x: Any, axis: int = -1) -> Any:
    return x - _logsumexp(x, axis=axis, keepdims=True)


NEURAL: dict[str, Callable[..., Any]] = {
    "relu": _relu, "sigmoid": _sigmoid, "silu": _silu, "swish": _silu, "softplus": _softplus, "tanh": np.tanh,
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp,
}  # fmt: skip


def jax_in_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a JAX function on NumPy arrays by name, or None when its source is out of reach."""
    jax = sys.modules["jax"]
    nn = SimpleNamespace(**NEURAL)
    modules = {
        id(jax.numpy): np,
        id(jax.nn): nn,
        id(jax): SimpleNamespace(
            numpy=np, nn=nn, jit=lambda f, **_: f, lax=SimpleNamespace(stop_gradient=lambda x: x)
        ),
    }

    def translated(value: Any) -> Any:
        if id(value) in modules:
            return modules[id(value)]
        if str(getattr(value, "__module__", "")).split(".")[0] in ("jax", "jaxlib"):
            name = getattr(value, "__name__", "")
            return NEURAL.get(name, getattr(np, name, value))
        return value

    start = function.fun
    if not isinstance(start, FunctionType):
        return None
    plain = copied(start, translated)

    def forward(**values: Any) -> Any:
        return plain(*values.values())

    forward.__wrapped__ = plain  # type: ignore[attr-defined]
    return forward


def copied(start: FunctionType, translated: Callable[[Any], Any]) -> FunctionType:
    """Copy a function and its module's others into names of their own, with each value translated."""
    names: dict[str, Any] = {}

    def cell_of(cell: CellType) -> CellType:
        try:
            return CellType(translated(cell.cell_contents))
        except ValueError:  # it is still empty
            return cell

    def copy(function: FunctionType) -> FunctionType:
        closure = tuple(map(cell_of, function.__closure__ or ()))
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    for name, value in start.__globals__.items():
        inner = getattr(value, "__wrapped__", value)  # what jit holds
        if isinstance(inner, FunctionType) and inner.__globals__ is start.__globals__:
            names[name] = copy(inner)
        else:
            names[name] = translated(value)
    return copy(start)
