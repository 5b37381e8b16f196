"""Functions written for JAX, run on NumPy's arrays, so that they can be traced, and run without being compiled.

JAX has no protocol for that: a function is copied, with its library's names bound to NumPy's. Where that does not work,
only the diagnosis by a trace is lost, and edits take longer to try; the verdict and a repair's proof never rest on it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.stand_ins import COUNTERPARTS
from handgrad.checking.interfaces.neural_counterparts import NEURAL, gelu, one_hot
from handgrad.checking.interfaces.numpy_counterparts import FUNCTIONS
from handgrad.checking.interfaces.tensors import is_jax

JAXS = ("jax", "jaxlib")
OWN = ("tree", "tree_util", "dtypes")  # modules of JAX's that need no counterpart


def jax_on_numpy(function: Any) -> Callable[..., Any] | None:
    """Return a JAX function on NumPy's arrays, or None when its source is out of reach."""
    start = unwrapped(function)
    return _copied(start) if isinstance(start, FunctionType) else None


def rule_on_numpy(function: Any) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """Return the two functions that ``defvjp`` was given, as they are now, on NumPy's arrays; None without them."""
    both = [getattr(function, name, None) for name in ("fwd", "bwd")]
    if not all(isinstance(each, FunctionType) for each in both):
        return None
    fwd, bwd = (_copied(each) for each in both if isinstance(each, FunctionType))
    return fwd, bwd


@contextmanager
def numpy_for_jax(names: dict[str, Any]) -> Iterator[None]:
    """Bind a module's names of JAX's to NumPy's: its functions run on NumPy's arrays, and nothing is compiled."""
    own = dict(names)
    names.update({name: counterpart(value) for name, value in own.items()})
    try:
        yield
    finally:
        names.update(own)


def counterpart(value: Any) -> Any:
    """Return NumPy's counterpart of one of JAX's modules, functions and arrays; of what is jitted, its function."""
    if (jax := sys.modules.get("jax")) is None:
        return value
    if isinstance(value, ModuleType):
        library, *_, last = value.__name__.split(".") * 2
        if value is jax.random:
            return _Random()
        return _JaxModule(last) if library == "jax" and last not in OWN else value
    if isinstance(value, jax.Array):
        return np.asarray(value) if is_jax(value) else value  # a key of random numbers is none
    if isinstance(inner := unwrapped(value), FunctionType) and inner.__module__.partition(".")[0] not in JAXS:
        return inner
    own = str(getattr(value, "__module__", "")).partition(".")[0] in JAXS
    return getattr(_JaxModule(), getattr(value, "__name__", ""), value) if own else value


COUNTERPARTS.append(counterpart)


class _Random:
    """``jax.random``, of NumPy's arrays."""

    def __getattr__(self, name: str) -> Any:
        draw = getattr(sys.modules["jax"].random, name)

        def drawn(*args: Any, **options: Any) -> Any:
            found = draw(*args, **options)
            return np.asarray(found) if str(getattr(found, "dtype", "")).startswith("float") else found

        return drawn


class UnknownCounterpartError(AttributeError):
    """A function of JAX's has none of NumPy's."""


class _JaxModule:
    """What stands for ``jax`` and its modules of functions: those of NumPy; its trees are its own."""

    def __init__(self, name: str = "jax") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name in ("numpy", "nn", "lax", "scipy", "special"):
            return _JaxModule(name)
        if name == "random":
            return _Random()
        if name in (*OWN, "Array"):
            return getattr(sys.modules["jax"], name)
        tables = ({**FUNCTIONS, **LAX} if self._name == "lax" else {}), JAX, vars(np), NEURAL
        found = next((table[name] for table in tables if name in table), None)
        if found is None:
            raise UnknownCounterpartError(f"{self._name}.{name}")
        return found


def _vmapped(function: Any, in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """Call a function of one example for each, and stack what it returns; arguments are arrays, not trees of them."""

    def of(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple | list) else [in_axes] * len(args)
        size = next(np.shape(arg)[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None)
        moved = [
            arg if axis is None else np.moveaxis(arg, axis, 0) for arg, axis in zip(args, axes, strict=True)
        ]
        found = [
            function(*(arg if axis is None else arg[k] for arg, axis in zip(moved, axes, strict=True)))
            for k in range(size)
        ]
        if isinstance(found[0], tuple):
            return tuple(np.stack(each, axis=out_axes) for each in zip(*found, strict=True))
        return np.stack(found, axis=out_axes)

    return of


def _scan(step: Any, carry: Any, xs: Any, length: int | None = None) -> Any:
    """Return what ``jax.lax.scan`` does of arrays."""
    found = []
    for k in range(length if xs is None else len(xs)):  # type: ignore[arg-type]
        carry, y = step(carry, None if xs is None else xs[k])
        found.append(y)
    return carry, (None if found[0] is None else np.stack(found))


JAX: dict[str, Callable[..., Any]] = {
    **{name: FUNCTIONS[name] for name in ("rsqrt", "erf", "erfc", "xlogy", "softmax", "log_softmax", "logsumexp")},
    **dict.fromkeys(("stop_gradient", "jit", "checkpoint", "remat"), lambda x, **_: x), "vmap": _vmapped,
    "one_hot": lambda x, num_classes, **_: one_hot(x, num_classes), "expit": FUNCTIONS["sigmoid"],
    "gelu": lambda x, approximate=True: gelu(x, "tanh" if approximate else "none"),
    **dict.fromkeys(("array", "asarray"), lambda x, *_, **__: np.copy(x) if isinstance(x, np.ndarray) else np.array(x)),
    "log_sigmoid": FUNCTIONS["log_sigmoid"], "hard_tanh": FUNCTIONS["hardtanh"], "soft_sign": FUNCTIONS["softsign"],
}  # fmt: skip
LAX: dict[str, Callable[..., Any]] = {
    "select": np.where, "max": np.maximum, "min": np.minimum, "logistic": FUNCTIONS["sigmoid"], "scan": _scan,
    "dot": np.matmul,
    "fori_loop": lambda lower, upper, body, start: reduce(lambda v, i: body(i, v), range(lower, upper), start),
    "cond": lambda chosen, yes, no, *given: (yes if chosen else no)(*given), "stop_gradient": lambda x: x,
    "integer_pow": lambda x, y: x**y, "clamp": lambda low, x, high: np.clip(x, low, high),
}  # fmt: skip


def unwrapped(function: Any) -> Any:
    """Return the function that jit, or what holds a gradient of its own, holds."""
    while not isinstance(function, FunctionType):
        inner = getattr(function, "fun", getattr(function, "__wrapped__", None))
        if inner is None:
            break
        function = inner
    return function


def _copied(start: FunctionType) -> FunctionType:
    """Copy a function and its module's others into names of their own, each bound to NumPy's counterpart."""
    names: dict[str, Any] = {}

    def cell_of(cell: CellType) -> CellType:
        is_empty = cell == CellType()  # still
        return cell if is_empty else CellType(counterpart(cell.cell_contents))

    def copy(function: FunctionType) -> FunctionType:
        closure = tuple(map(cell_of, function.__closure__ or ()))
        made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    for name, value in start.__globals__.items():
        inner = unwrapped(value)
        own = isinstance(inner, FunctionType) and inner.__globals__ is start.__globals__
        names[name] = copy(inner) if own else counterpart(value)
    return copy(start)
