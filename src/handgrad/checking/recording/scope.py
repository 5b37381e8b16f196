"""What a user's functions see while they are recorded: NumPy, mathematics and constants that hand themselves over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.recording import dispatch
from handgrad.checking.recording.generators import Draws, Maker, constant, constants_only
from handgrad.checking.recording.sizes import Size
from handgrad.checking.recording.tape import Tape
from handgrad.checking.recording.traced import NotRecordedError, Traced

_ABSENT = object()
_MATH = {
    "fabs": "absolute", "pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
}  # fmt: skip


class _Namespace:
    """A module whose functions accept traced values."""

    def __init__(
        self, tape: Tape, module: ModuleType, spelling: str, wrap: Callable[[Tape, str, Any, str], Any]
    ) -> None:
        self._tape, self._module, self._spelling, self._wrap = tape, module, spelling, wrap

    def __getattr__(self, name: str) -> Any:
        item = getattr(self._module, name)
        wrapped = self._wrap(self._tape, name, item, f"{self._spelling}.{name}")
        self.__dict__[name] = wrapped
        return wrapped


class _ScalarType:
    """``np.float64`` and its kin: a dtype, and a conversion that keeps the trace."""

    def __init__(self, tape: Tape, kind: type[Any]) -> None:
        self._tape, self._kind, self.dtype = tape, kind, np.dtype(kind)

    def __call__(self, *args: Any) -> Any:
        if args and dispatch.holds_traced(args[0]):
            if self._kind is int:
                return _integer(self._tape, args[0])
            array = self._tape.call("asarray", args[:1], {})
            if self._kind is float:
                array = array.item()
            return self._tape.call("astype", (array, self.dtype), {})
        return self._kind(*args)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._kind)

    def __eq__(self, other: object) -> bool:
        return self._kind == (other._kind if isinstance(other, _ScalarType) else other)

    def __hash__(self) -> int:
        return hash(self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def _scalar_type(tape: Tape, kind: type[np.generic]) -> Any:
    """Return the stand-in of a scalar type; abstract ones (``np.floating``) convert nothing."""
    return _ScalarType(tape, kind) if kind in np.sctypeDict.values() else kind


def _integer(tape: Tape, item: Any) -> int:
    """Return ``int(item)``, which knows its spelling when it is an input."""
    plain = int(item)
    text = tape.text_of(item.index()) if type(item) is Traced else ""
    return Size(plain, f"int({text})", item) if text else plain


class _Ufunc:
    """A ufunc that takes lists of traced values too, and whose methods are followed."""

    def __init__(self, tape: Tape, ufunc: np.ufunc) -> None:
        self._tape, self._ufunc = tape, ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        if dispatch.holds_traced(args) or dispatch.holds_traced(options):
            return dispatch.ufunc(self._tape, self._ufunc, "__call__", args, options)
        return constant(self._tape, self._ufunc(*args, **options))

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._ufunc, name)
        if name not in ("reduce", "accumulate", "outer", "at", "reduceat"):
            return plain

        def method(*args: Any, **options: Any) -> Any:
            if name == "at" and type(args[0]) is not Traced and not dispatch.holds_traced(args):
                return plain(*args, **options)
            return dispatch.ufunc(self._tape, self._ufunc, name, args, options)

        return method


def _wrap_numpy(prefix: str) -> Callable[[Tape, str, Any, str], Any]:
    def wrap(tape: Tape, name: str, item: Any, spelling: str) -> Any:
        if isinstance(item, ModuleType):
            return _module(tape, item, spelling) or item
        if isinstance(item, np.ufunc):
            return _Ufunc(tape, item)
        if isinstance(item, type):
            if issubclass(item, np.generic):
                return _scalar_type(tape, item)
            return _vectorize(tape) if item is np.vectorize else _class(tape, name, item)
        if name == "frompyfunc":
            return lambda function, nin, nout: _opaque(tape, np.vectorize(function), "frompyfunc")
        if name in ("r_", "c_"):
            return _Joiner(tape, item, name)
        return _function(tape, prefix + name, item) if callable(item) else item

    return wrap


def _class(tape: Tape, name: str, item: type) -> Any:
    return _function(tape, name, item) if name == "ndenumerate" else item


def _function(tape: Tape, name: str, function: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        if name == "fromiter" or dispatch.holds_traced(args) or dispatch.holds_traced(options):
            return dispatch.call(tape, name, args, options)
        return constant(tape, function(*args, **options))

    call.__name__ = name
    return call


class _Joiner:
    """``np.r_`` and ``np.c_`` of arrays."""

    def __init__(self, tape: Tape, plain: Any, name: str) -> None:
        self._tape, self._plain, self._name = tape, plain, name

    def __getitem__(self, key: Any) -> Any:
        if not dispatch.holds_traced(key):
            return constant(self._tape, self._plain[key])
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(p, (str, slice)) for p in parts):
            raise NotRecordedError(f"np.{self._name} with directives or slices is not followed")
        return dispatch.call(self._tape, "column_stack" if self._name == "c_" else "hstack", (parts,), {})


def _vectorize(tape: Tape) -> Any:
    def vectorize(function: Any, *args: Any, **options: Any) -> Any:
        return _opaque(tape, np.vectorize(function, *args, **options), "vectorize")

    return vectorize


def _opaque(tape: Tape, function: Any, name: str) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        if dispatch.holds_traced(args) or dispatch.holds_traced(options):
            if isinstance(function, np.vectorize) and not options:
                operands = [
                    tape.call("asarray", (a,), {}) if isinstance(a, (list, tuple)) else a for a in args
                ]
                return tape.apply("elementwise", function, operands, {})
            return dispatch.opaque(tape, name, function, args, options)
        return constant(tape, function(*args, **options))

    return call


def _wrap_math(tape: Tape, name: str, item: Any, spelling: str) -> Any:
    if not callable(item):
        return item
    known = _MATH.get(name, name)

    def plain(*numbers: Any) -> Any:
        return np.float64(item(*numbers))

    plain.pyfunc = item  # type: ignore[attr-defined]
    tape.spellings[plain] = spelling

    def call(*args: Any) -> Any:
        if not dispatch.holds_traced(args):
            return item(*args)
        if name in ("floor", "ceil", "trunc"):
            return int(args[0]) if name == "trunc" else item(float(args[0]))
        numbers = tuple(a.item() if type(a) is Traced else a for a in args)
        return tape.apply(
            known if isinstance(getattr(np, known, None), np.ufunc) else "elementwise", plain, numbers, {}
        )

    return call


def _wrap_random(tape: Tape, name: str, item: Any, spelling: str) -> Any:
    if name in ("default_rng", "RandomState"):
        return Maker(tape, name, item, spelling)
    return item if isinstance(item, type) or not callable(item) else constants_only(tape, name, item)


def _wrap_foreign(tape: Tape, name: str, item: Any, spelling: str) -> Any:
    if isinstance(item, ModuleType):
        return _module(tape, item, spelling) or item
    if isinstance(item, type) or not callable(item):
        return item
    tape.spellings[item] = spelling
    return _Ufunc(tape, item) if isinstance(item, np.ufunc) else _opaque(tape, item, name)


def _module(tape: Tape, module: ModuleType, spelling: str) -> Any:
    """Return the stand-in of a module, or None for one that is left alone."""
    name = module.__name__
    tape.modules[spelling] = module
    if name == "numpy.random":
        return _Namespace(tape, module, spelling, _wrap_random)
    if name == "numpy" or name.startswith("numpy."):
        return _Namespace(tape, module, spelling, _wrap_numpy("" if name == "numpy" else name[6:] + "."))
    if name == "math":
        return _Namespace(tape, module, spelling, _wrap_math)
    if name == "scipy" or name.startswith("scipy."):
        return _Namespace(tape, module, spelling, _wrap_foreign)
    return None


def _stand_in(tape: Tape, name: str, item: Any) -> Any:
    """Return what a global becomes while recording; itself, if it may stay."""
    if isinstance(item, ModuleType):
        return _module(tape, item, name) or item
    if type(item) is np.ndarray and item.dtype.kind in "fiub":
        return tape.constant(item, name)
    if isinstance(item, (np.random.Generator, np.random.RandomState)):
        return Draws(tape, item)
    if isinstance(item, np.vectorize):
        tape.spellings[item] = name
        return _opaque(tape, item, name)
    if isinstance(item, type):
        if item is np.random.RandomState:
            return Maker(tape, "RandomState", item, name)
        return _scalar_type(tape, item) if issubclass(item, np.generic) else item
    return _imported(tape, name, item) if callable(item) else item


def _imported(tape: Tape, name: str, item: Any) -> Any:
    """Return the stand-in of a function that was imported by name."""
    home = getattr(item, "__module__", None) or ""
    own_name: str = getattr(item, "__name__", name)
    owner = getattr(item, "__self__", None)
    if isinstance(owner, (np.random.Generator, np.random.RandomState)) or home.startswith("numpy.random"):
        return _wrap_random(tape, own_name, item, name)
    if isinstance(item, np.ufunc):
        own = getattr(np, own_name, None) is item
        return _wrap_numpy("")(tape, own_name, item, name) if own else _wrap_foreign(tape, name, item, name)
    if home.split(".")[0] == "numpy":
        for prefix, module in (
            ("", np),
            ("linalg.", np.linalg),
            ("lib.stride_tricks.", np.lib.stride_tricks),
        ):
            if getattr(module, own_name, None) is item:
                return _wrap_numpy(prefix)(tape, own_name, item, name)
        return _wrap_foreign(tape, name, item, name)
    if home == "math":
        return _wrap_math(tape, own_name, item, name)
    return _wrap_foreign(tape, name, item, name) if home.split(".")[0] == "scipy" else item


def _builtins(tape: Tape) -> dict[str, Any]:
    def length(item: Any) -> int:
        n = len(item)
        text = tape.text_of(item.index()) if type(item) is Traced else ""
        return Size(n, f"len({text})") if text else n

    return {"len": length, "float": _ScalarType(tape, float), "int": _ScalarType(tape, int)}


def _free(item: Any, seen: set[int], depth: int) -> Any:
    """Return `item` with plain arrays in place of traced ones, also within what the user's code keeps."""
    if type(item) is Traced:
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
def recorded_scope(tape: Tape, scopes: Sequence[dict[str, Any]], *, builtins: bool) -> Iterator[None]:
    """Replace what the functions of some modules see, and put it back whatever happens.

    Parameters
    ----------
    tape
        What is recorded on.
    scopes
        The globals of the functions.
    builtins
        Whether ``len``, ``float`` and ``int`` are replaced too: they then keep the trace, but are no classes.
    """
    changed: list[tuple[dict[str, Any], str, Any, Any]] = []
    try:
        for scope in scopes:
            stand_ins = {n: v for n, v in _builtins(tape).items() if builtins and n not in scope}
            for name, item in scope.items():
                if not name.startswith("__") and (stand_in := _stand_in(tape, name, item)) is not item:
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
