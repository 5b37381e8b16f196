"""What a user's functions see while they are traced, in the place of NumPy, `math`, SciPy and their own constants.

A traced array takes part in NumPy's own protocols, so most of a forward needs none of this. What NumPy does not
hand over is replaced: functions that make arrays (what is assigned to their entries is to be traced too), that
convert (``np.asarray``, ``float``), and the functions of `math`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import numpy_functions
from handgrad.checking.forward_trace.numpy_functions import holds_traced
from handgrad.checking.forward_trace.random_generators import GeneratorMaker, TracedGenerator, untraced
from handgrad.checking.forward_trace.symbolic_sizes import SymbolicSize
from handgrad.checking.forward_trace.traced_array import TracedArray
from handgrad.checking.forward_trace.tracer import Tracer

_ABSENT = object()
_LIBRARIES = ("numpy", "math", "scipy")
_RANDOM = (np.random.Generator, np.random.RandomState)
_MATH = {
    "fabs": "absolute", "pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


def stand_in(tracer: Tracer, item: Any, text: str) -> Any:
    """Return what a global, which the user writes as `text`, becomes while tracing; itself, if it may stay."""
    if isinstance(item, ModuleType):
        return _Module(tracer, item, text) if item.__name__.split(".")[0] in _LIBRARIES else item
    if type(item) is np.ndarray:
        return tracer.constant(item, text) if item.dtype.kind in "fiub" else item
    if isinstance(item, _RANDOM):
        return TracedGenerator(tracer, item)
    if isinstance(item, np.vectorize):
        tracer.spellings[item] = text
        return _Function(tracer, item)
    if type(item) is type(np.r_) or type(item) is type(np.c_):
        return _Joiner(tracer, item)
    if isinstance(item, type) and issubclass(item, np.generic):
        return _ScalarType(tracer, item) if item in np.sctypeDict.values() else item
    if item is np.vectorize or item is np.frompyfunc:
        return lambda function, *args, **options: _Function(
            tracer, np.vectorize(function, **(options if item is np.vectorize else {}))
        )
    owner = getattr(item, "__self__", None)
    home = "numpy.random" if isinstance(owner, _RANDOM) else getattr(item, "__module__", None) or ""
    if item is np.random.default_rng or item is np.random.RandomState:
        return GeneratorMaker(tracer, item, text)
    if isinstance(item, np.ufunc):
        home = home or "numpy" if getattr(np, item.__name__, None) is item else "scipy"
    if not callable(item) or (isinstance(item, type) and item is not np.ndenumerate):
        return item
    if home.startswith("numpy.random"):
        return lambda *args, **options: tracer.constants(
            item(*untraced(item, args), **untraced(item, options))
        )
    if home == "math":
        return _math_function(tracer, item, text)
    if home.split(".")[0] in _LIBRARIES:
        if not home.startswith("numpy"):
            tracer.spellings[item] = text
        return _Function(tracer, item)
    return item


class _Module:
    """A module whose functions accept traced values."""

    def __init__(self, tracer: Tracer, module: ModuleType, text: str) -> None:
        self._tracer, self._module, self._text = tracer, module, text
        tracer.modules[text] = module

    def __getattr__(self, name: str) -> Any:
        found = stand_in(self._tracer, getattr(self._module, name), f"{self._text}.{name}")
        self.__dict__[name] = found
        return found


class _Function:
    """A function that accepts traced values; the arrays it makes of plain ones are traced when written to."""

    def __init__(self, tracer: Tracer, function: Any) -> None:
        self._tracer, self._function = tracer, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        tracer, function = self._tracer, self._function
        if not (holds_traced(args) or holds_traced(options) or function is np.fromiter):
            return tracer.constants(function(*args, **options))
        if isinstance(function, np.vectorize) and not options:
            return tracer.apply("elementwise", function, args, {})
        if (getattr(function, "__module__", None) or "numpy").startswith("numpy"):
            return numpy_functions.call_function(tracer, function, args, options)
        return numpy_functions.opaque(tracer, function.__name__, function, args, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class _Joiner:
    """``np.r_`` and ``np.c_``, through their own source."""

    def __init__(self, tracer: Tracer, joiner: Any) -> None:
        self._tracer, self._joiner = tracer, joiner

    def __getitem__(self, key: Any) -> Any:
        return self._tracer.through_source(type(self._joiner).__getitem__)(self._joiner, key)


class _ScalarType:
    """``np.float64`` and its kin: a dtype, and a conversion that keeps the trace."""

    def __init__(self, tracer: Tracer, kind: type[Any]) -> None:
        self._tracer, self._kind, self.dtype = tracer, kind, np.dtype(kind)

    def __call__(self, *args: Any) -> Any:
        if not holds_traced(args):
            return self._kind(*args)
        if self._kind is int:
            text = self._tracer.text_of(args[0].index()) if type(args[0]) is TracedArray else ""
            return SymbolicSize(int(args[0]), f"int({text})", args[0]) if text else int(args[0])
        array = numpy_functions.as_array(self._tracer, args[0])
        return self._tracer.call("astype", (array.item() if self._kind is float else array, self.dtype), {})

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._kind)

    def __eq__(self, other: object) -> bool:
        return self._kind == (other._kind if isinstance(other, _ScalarType) else other)

    def __hash__(self) -> int:
        return hash(self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def _math_function(tracer: Tracer, function: Any, text: str) -> Any:
    name = function.__name__
    ufunc = _MATH.get(name, name) if isinstance(getattr(np, _MATH.get(name, name), None), np.ufunc) else None

    def plain(*numbers: Any) -> Any:
        return np.float64(function(*numbers))

    plain.pyfunc = function  # type: ignore[attr-defined]
    tracer.spellings[plain] = text

    def call(*args: Any) -> Any:
        if not holds_traced(args):
            return function(*args)
        if name in ("floor", "ceil", "trunc"):
            return function(float(args[0]))
        numbers = tuple(a.item() if type(a) is TracedArray else a for a in args)
        return tracer.apply(ufunc or "elementwise", plain, numbers, {})

    return call


def _builtins(tracer: Tracer) -> dict[str, Any]:
    def length(item: Any) -> int:
        text = tracer.text_of(item.index()) if type(item) is TracedArray else ""
        return SymbolicSize(len(item), f"len({text})") if text else len(item)

    return {"len": length, "float": _ScalarType(tracer, float), "int": _ScalarType(tracer, int)}


class _ArrayConverter:
    """What NumPy's own source converts its arguments with, which is written in C."""

    def __init__(self, tracer: Tracer, *items: Any) -> None:
        self._arrays = tuple(numpy_functions.as_array(tracer, item) for item in items)

    def as_arrays(self, **_: Any) -> tuple[Any, ...]:
        return self._arrays

    def __getitem__(self, k: int) -> Any:
        return self._arrays[k]

    def wrap(self, array: Any, **_: Any) -> Any:
        return array


def through_source(tracer: Tracer, function: FunctionType) -> FunctionType:
    """Return a function of NumPy's that is written in Python, made to accept traced values."""
    scope = tracer.library_scopes.setdefault(id(function.__globals__), {})
    if not scope:
        scope |= {
            name: item
            if name.startswith("__") or isinstance(item, type)
            else stand_in(tracer, item, f"np.{name}")
            for name, item in function.__globals__.items()
        }
        scope |= {"__builtins__": builtins, "_array_converter": partial(_ArrayConverter, tracer)}
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


@contextmanager
def traced_scope(tracer: Tracer, scopes: Sequence[dict[str, Any]], *, builtins: bool) -> Iterator[None]:
    """Replace what the functions of some modules see (`scopes` are their globals), and restore it whatever happens.

    With `builtins`, ``len``, ``float`` and ``int`` are replaced too: they then keep the trace, but are no classes.
    """
    changed: list[tuple[dict[str, Any], str, Any, Any]] = []
    try:
        for scope in scopes:
            found = {n: v for n, v in _builtins(tracer).items() if builtins and n not in scope}
            for name, item in scope.items():
                if not name.startswith("__") and (other := stand_in(tracer, item, name)) is not item:
                    found[name] = other
            for name, other in found.items():
                changed.append((scope, name, scope.get(name, _ABSENT), other))
                scope[name] = other
        yield
    finally:
        for scope, name, before, other in changed:
            if scope.get(name, _ABSENT) is not other:
                continue  # the function bound it anew: its doing, and freed of traces below
            if before is _ABSENT:
                del scope[name]
            else:
                scope[name] = before
        for scope in scopes:
            seen: set[int] = set()
            for name, item in list(scope.items()):
                if not name.startswith("__") and (new := _plain(item, seen, 4)) is not item:
                    scope[name] = new


def _plain(item: Any, seen: set[int], depth: int) -> Any:
    """Return `item` with plain arrays in place of traced ones, also within what the user's code has cached."""
    if type(item) is TracedArray:
        plain = item.plain()
        return np.array(plain) if type(plain) is np.ndarray else plain
    if type(item) is TracedGenerator:
        return item.generator
    if depth == 0 or id(item) in seen:
        return item
    if type(item) is tuple:
        parts = tuple(_plain(part, seen, depth - 1) for part in item)
        return parts if any(new is not old for new, old in zip(parts, item, strict=True)) else item
    seen.add(id(item))
    if isinstance(item, (dict, list)):
        for key, part in list(item.items() if isinstance(item, dict) else enumerate(item)):
            if (new := _plain(part, seen, depth - 1)) is not part:
                item[key] = new
    elif not isinstance(item, (ModuleType, np.ndarray, BuiltinFunctionType)):
        for name, part in list(getattr(item, "__dict__", {}).items()):
            if not name.startswith("__") and (new := _plain(part, seen, depth - 1)) is not part:
                setattr(item, name, new)
    return item
