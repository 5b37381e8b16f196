"""What a user's functions see while they are recorded: NumPy, mathematics and constants that hand themselves over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import dispatch
from handgrad.checking.forward_trace.generators import Draws, Maker, constant, constants_only
from handgrad.checking.forward_trace.symbolic_sizes import Size
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer

_ABSENT = object()
_MATH = {
    "fabs": "absolute", "pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


class _Namespace:
    """A module whose functions accept traced values."""

    def __init__(
        self, tracer: Tracer, module: ModuleType, spelling: str, wrap: Callable[[Tracer, str, Any, str], Any]
    ) -> None:
        self._tracer, self._module, self._spelling, self._wrap = tracer, module, spelling, wrap

    def __getattr__(self, name: str) -> Any:
        item = getattr(self._module, name)
        wrapped = self._wrap(self._tracer, name, item, f"{self._spelling}.{name}")
        self.__dict__[name] = wrapped
        return wrapped


class _ScalarType:
    """``np.float64`` and its kin: a dtype, and a conversion that keeps the trace."""

    def __init__(self, tracer: Tracer, kind: type[Any]) -> None:
        self._tracer, self._kind, self.dtype = tracer, kind, np.dtype(kind)

    def __call__(self, *args: Any) -> Any:
        if args and dispatch.holds_traced(args[0]):
            if self._kind is int:
                return _integer(self._tracer, args[0])
            array = self._tracer.call("asarray", args[:1], {})
            if self._kind is float:
                array = array.item()
            return self._tracer.call("astype", (array, self.dtype), {})
        return self._kind(*args)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._kind)

    def __eq__(self, other: object) -> bool:
        return self._kind == (other._kind if isinstance(other, _ScalarType) else other)

    def __hash__(self) -> int:
        return hash(self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def _scalar_type(tracer: Tracer, kind: type[np.generic]) -> Any:
    """Return the stand-in of a scalar type; abstract ones (``np.floating``) convert nothing."""
    return _ScalarType(tracer, kind) if kind in np.sctypeDict.values() else kind


def _integer(tracer: Tracer, item: Any) -> int:
    """Return ``int(item)``, which knows its spelling when it is an input."""
    plain = int(item)
    text = tracer.text_of(item.index()) if type(item) is TracedArray else ""
    return Size(plain, f"int({text})", item) if text else plain


class _Ufunc:
    """A ufunc that takes lists of traced values too, and whose methods are followed."""

    def __init__(self, tracer: Tracer, ufunc: np.ufunc) -> None:
        self._tracer, self._ufunc = tracer, ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        if dispatch.holds_traced(args) or dispatch.holds_traced(options):
            return dispatch.ufunc(self._tracer, self._ufunc, "__call__", args, options)
        return constant(self._tracer, self._ufunc(*args, **options))

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._ufunc, name)
        if name not in ("reduce", "accumulate", "outer", "at", "reduceat"):
            return plain

        def method(*args: Any, **options: Any) -> Any:
            if name == "at" and type(args[0]) is not TracedArray and not dispatch.holds_traced(args):
                return plain(*args, **options)
            return dispatch.ufunc(self._tracer, self._ufunc, name, args, options)

        return method


def _wrap_numpy(prefix: str) -> Callable[[Tracer, str, Any, str], Any]:
    def wrap(tracer: Tracer, name: str, item: Any, spelling: str) -> Any:
        if isinstance(item, ModuleType):
            return _module(tracer, item, spelling) or item
        if isinstance(item, np.ufunc):
            return _Ufunc(tracer, item)
        if isinstance(item, type):
            if issubclass(item, np.generic):
                return _scalar_type(tracer, item)
            return _vectorize(tracer) if item is np.vectorize else _class(tracer, name, item)
        if name == "frompyfunc":
            return lambda function, nin, nout: _opaque(tracer, np.vectorize(function), "frompyfunc")
        if name in ("r_", "c_"):
            return _Joiner(tracer, item, name)
        return _function(tracer, prefix + name, item) if callable(item) else item

    return wrap


def _class(tracer: Tracer, name: str, item: type) -> Any:
    return _function(tracer, name, item) if name == "ndenumerate" else item


def _function(tracer: Tracer, name: str, function: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        if name == "fromiter" or dispatch.holds_traced(args) or dispatch.holds_traced(options):
            return dispatch.call(tracer, name, args, options)
        return constant(tracer, function(*args, **options))

    call.__name__ = name
    return call


class _Joiner:
    """``np.r_`` and ``np.c_`` of arrays."""

    def __init__(self, tracer: Tracer, plain: Any, name: str) -> None:
        self._tracer, self._plain, self._name = tracer, plain, name

    def __getitem__(self, key: Any) -> Any:
        if not dispatch.holds_traced(key):
            return constant(self._tracer, self._plain[key])
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, (str, slice)) for p in parts):
            raise UntraceableError(f"np.{self._name} with directives or slices is not followed")
        return dispatch.call(self._tracer, "column_stack" if self._name == "c_" else "hstack", (parts,), {})


def _vectorize(tracer: Tracer) -> Any:
    def vectorize(function: Any, *args: Any, **options: Any) -> Any:
        return _opaque(tracer, np.vectorize(function, *args, **options), "vectorize")

    return vectorize


def _opaque(tracer: Tracer, function: Any, name: str) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        if dispatch.holds_traced(args) or dispatch.holds_traced(options):
            if isinstance(function, np.vectorize) and not options:
                operands = [
                    tracer.call("asarray", (a,), {}) if isinstance(a, (list, tuple)) else a for a in args
                ]
                return tracer.apply("elementwise", function, operands, {})
            return dispatch.opaque(tracer, name, function, args, options)
        return constant(tracer, function(*args, **options))

    return call


def _wrap_math(tracer: Tracer, name: str, item: Any, spelling: str) -> Any:
    if not callable(item):
        return item
    known = _MATH.get(name, name)

    def plain(*numbers: Any) -> Any:
        return np.float64(item(*numbers))

    plain.pyfunc = item  # type: ignore[attr-defined]
    tracer.spellings[plain] = spelling

    def call(*args: Any) -> Any:
        if not dispatch.holds_traced(args):
            return item(*args)
        if name in ("floor", "ceil", "trunc"):
            return int(args[0]) if name == "trunc" else item(float(args[0]))
        numbers = tuple(a.item() if type(a) is TracedArray else a for a in args)
        return tracer.apply(
            known if isinstance(getattr(np, known, None), np.ufunc) else "elementwise", plain, numbers, {}
        )

    return call


def _wrap_random(tracer: Tracer, name: str, item: Any, spelling: str) -> Any:
    if name in ("default_rng", "RandomState"):
        return Maker(tracer, name, item, spelling)
    return item if isinstance(item, type) or not callable(item) else constants_only(tracer, name, item)


def _wrap_foreign(tracer: Tracer, name: str, item: Any, spelling: str) -> Any:
    if isinstance(item, ModuleType):
        return _module(tracer, item, spelling) or item
    if isinstance(item, type) or not callable(item):
        return item
    tracer.spellings[item] = spelling
    return _Ufunc(tracer, item) if isinstance(item, np.ufunc) else _opaque(tracer, item, name)


def _module(tracer: Tracer, module: ModuleType, spelling: str) -> Any:
    """Return the stand-in of a module, or None for one that is left alone."""
    name = module.__name__
    tracer.modules[spelling] = module
    if name == "numpy.random":
        return _Namespace(tracer, module, spelling, _wrap_random)
    if name == "numpy" or name.startswith("numpy."):
        return _Namespace(tracer, module, spelling, _wrap_numpy("" if name == "numpy" else name[6:] + "."))
    if name == "math":
        return _Namespace(tracer, module, spelling, _wrap_math)
    if name == "scipy" or name.startswith("scipy."):
        return _Namespace(tracer, module, spelling, _wrap_foreign)
    return None


def _stand_in(tracer: Tracer, name: str, item: Any) -> Any:
    """Return what a global becomes while trace; itself, if it may stay."""
    if isinstance(item, ModuleType):
        return _module(tracer, item, name) or item
    if type(item) is np.ndarray and item.dtype.kind in "fiub":
        return tracer.constant(item, name)
    if isinstance(item, (np.random.Generator, np.random.RandomState)):
        return Draws(tracer, item)
    if isinstance(item, np.vectorize):
        tracer.spellings[item] = name
        return _opaque(tracer, item, name)
    if isinstance(item, type):
        if item is np.random.RandomState:
            return Maker(tracer, "RandomState", item, name)
        return _scalar_type(tracer, item) if issubclass(item, np.generic) else item
    return _imported(tracer, name, item) if callable(item) else item


def _imported(tracer: Tracer, name: str, item: Any) -> Any:
    """Return the stand-in of a function that was imported by name."""
    home = getattr(item, "__module__", None) or ""
    own_name: str = getattr(item, "__name__", name)
    owner = getattr(item, "__self__", None)
    if isinstance(owner, (np.random.Generator, np.random.RandomState)) or home.startswith("numpy.random"):
        return _wrap_random(tracer, own_name, item, name)
    if isinstance(item, np.ufunc):
        own = getattr(np, own_name, None) is item
        return (
            _wrap_numpy("")(tracer, own_name, item, name) if own else _wrap_foreign(tracer, name, item, name)
        )
    if home.split(".")[0] == "numpy":
        for prefix, module in (
            ("", np),
            ("linalg.", np.linalg),
            ("lib.stride_tricks.", np.lib.stride_tricks),
        ):
            if getattr(module, own_name, None) is item:
                return _wrap_numpy(prefix)(tracer, own_name, item, name)
        return _wrap_foreign(tracer, name, item, name)
    if home == "math":
        return _wrap_math(tracer, own_name, item, name)
    return _wrap_foreign(tracer, name, item, name) if home.split(".")[0] == "scipy" else item


def _builtins(tracer: Tracer) -> dict[str, Any]:
    def length(item: Any) -> int:
        n = len(item)
        text = tracer.text_of(item.index()) if type(item) is TracedArray else ""
        return Size(n, f"len({text})") if text else n

    return {"len": length, "float": _ScalarType(tracer, float), "int": _ScalarType(tracer, int)}


def _free(item: Any, seen: set[int], depth: int) -> Any:
    """Return `item` with plain arrays in place of traced ones, also within what the user's code keeps."""
    if type(item) is TracedArray:
        plain = item.plain()
        return np.array(plain) if type(plain) is np.ndarray else plain
    if type(item) is Draws:
        return item.generator
    if depth == 0 or id(item) in seen:
        return item
    if type(item) is tuple:
        parts = tuple(_free(part, seen, depth - 1) for part in item)
        return parts if any(new is not old for new, old in zip(parts, item, strict=True)) else item
    seen.add(id(item))
    if isinstance(item, dict):
        for key, part in list(item.items()):
            if (new := _free(part, seen, depth - 1)) is not part:
                item[key] = new
    elif isinstance(item, list):
        for k, part in enumerate(item):
            if (new := _free(part, seen, depth - 1)) is not part:
                item[k] = new
    elif not isinstance(item, (ModuleType, np.ndarray, BuiltinFunctionType)):
        for name, part in list(getattr(item, "__dict__", {}).items()):
            if not name.startswith("__") and (new := _free(part, seen, depth - 1)) is not part:
                setattr(item, name, new)
    return item


@contextmanager
def recorded_scope(tracer: Tracer, scopes: Sequence[dict[str, Any]], *, builtins: bool) -> Iterator[None]:
    """Replace what the functions of some modules see, and put it back whatever happens.

    Parameters
    ----------
    tracer
        What is recorded on.
    scopes
        The globals of the functions.
    builtins
        Whether ``len``, ``float`` and ``int`` are replaced too: they then keep the trace, but are no classes.
    """
    changed: list[tuple[dict[str, Any], str, Any, Any]] = []
    try:
        for scope in scopes:
            stand_ins = {n: v for n, v in _builtins(tracer).items() if builtins and n not in scope}
            for name, item in scope.items():
                if not name.startswith("__") and (stand_in := _stand_in(tracer, name, item)) is not item:
                    stand_ins[name] = stand_in
            for name, stand_in in stand_ins.items():
                changed.append((scope, name, scope.get(name, _ABSENT), stand_in))
                scope[name] = stand_in
        yield
    finally:
        for scope, name, before, stand_in in changed:
            if scope.get(name, _ABSENT) is not stand_in:
                continue  # the function rebound it: its doing, and freed of traces below
            if before is _ABSENT:
                del scope[name]
            else:
                scope[name] = before
        for scope in scopes:
            seen: set[int] = set()
            for name, item in list(scope.items()):
                if not name.startswith("__") and (new := _free(item, seen, 4)) is not item:
                    scope[name] = new
