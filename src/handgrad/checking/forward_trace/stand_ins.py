"""What a user's functions see while they are traced, in the place of NumPy, `math`, SciPy and their own constants.

A traced array takes part in NumPy's own protocols, so most of a forward needs none of this. What NumPy does not
hand over is replaced: functions that make arrays (what is assigned to their entries is to be traced too), that
convert (``np.asarray``, ``float``), random generators, and the functions of `math`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.forward_trace import array_functions, numpy_functions  # noqa: F401 - the first registers functions
from handgrad.checking.forward_trace.spelling import NoTextError, literal
from handgrad.checking.forward_trace.traced_array import SymbolicSize, TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer, bare, holds_traced

_LIBRARIES = ("numpy", "math", "scipy")
_RANDOM = (np.random.Generator, np.random.RandomState)
_CACHED_DEPTH = 4  # how deep in lists, dicts and attributes a user's function caches traced values


COUNTERPARTS: list[Callable[[Any], Any]] = []
"""Functions that return NumPy's counterpart of another library's function, module or array, and else what they are given."""


def stand_in(tracer: Tracer, item: Any, text: str) -> Any:
    """Return what a global, which the user writes as `text`, becomes while tracing; itself, if it may stay."""
    for counterpart in COUNTERPARTS:
        if (found := counterpart(item)) is not item:
            return found
    if isinstance(item, ModuleType):
        return _Module(tracer, item, text) if item.__name__.split(".")[0] in _LIBRARIES else item
    if type(item) is np.ndarray:
        return tracer.constant(item, text) if item.dtype.kind in "fiub" else item
    if isinstance(item, _RANDOM):
        return TracedGenerator(tracer, item)
    if type(item) in (type(np.r_), type(np.c_)):
        return _Joiner(tracer, item)
    if item is np.vectorize:
        return lambda *args, **options: _Function(tracer, np.vectorize(*args, **options))
    if item is np.random.default_rng or item is np.random.RandomState:
        return partial(_generator, tracer, item, text)
    if isinstance(item, type):
        return _ScalarType(tracer, item) if item in np.sctypeDict.values() else item
    home = _home(item)
    if not callable(item) or home.split(".")[0] not in _LIBRARIES:
        return item
    if not home.startswith("numpy") or isinstance(item, np.vectorize):
        tracer.spellings[item] = text
    return _math_function(tracer, item, text) if home == "math" else _Function(tracer, item)


def _home(item: Any) -> str:
    """Return the module that a function belongs to."""
    if isinstance(getattr(item, "__self__", None), _RANDOM):
        return "numpy.random"
    if isinstance(item, np.ufunc):
        return "numpy" if getattr(np, item.__name__, None) is item else "scipy"
    return getattr(item, "__module__", None) or ""


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
        tracer, function, home = self._tracer, self._function, _home(self._function)
        if home.startswith("numpy.random"):
            args, options = untraced(function, args), untraced(function, options)
        if not (holds_traced(args) or holds_traced(options)):
            return tracer.constants(function(*args, **options))
        if isinstance(function, np.vectorize) and not options:
            return tracer.apply("elementwise", function, args, {})
        if home.startswith("numpy"):
            return numpy_functions.call(tracer, function, args, options)
        run = (
            numpy_functions.known if function.__name__ in numpy_functions.OPERANDS else numpy_functions.opaque
        )
        return run(tracer, function.__name__, function, args, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class _Joiner:
    """``np.r_`` and ``np.c_``, through their own source."""

    def __init__(self, tracer: Tracer, joiner: Any) -> None:
        self._tracer, self._joiner = tracer, joiner

    def __getitem__(self, key: Any) -> Any:
        return through_source(self._tracer, type(self._joiner).__getitem__)(self._joiner, key)


class _ScalarType:
    """``np.float64`` and its kin: a dtype, and a conversion that keeps the trace."""

    def __init__(self, tracer: Tracer, kind: type[Any]) -> None:
        self._tracer, self._kind, self.dtype = tracer, kind, np.dtype(kind)

    def __call__(self, *args: Any) -> Any:
        if not holds_traced(args):
            return self._kind(*args)
        if self._kind is int:
            text = args[0].text() if type(args[0]) is TracedArray else ""
            return SymbolicSize(int(args[0]), f"int({text})") if text else int(args[0])
        array = self._tracer.array(args[0])
        return (array.item() if self._kind is float else array).astype(self.dtype)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def _math_function(tracer: Tracer, function: Any, text: str) -> Any:
    ufunc = getattr(np, function.__name__, None)
    name = ufunc.__name__ if isinstance(ufunc, np.ufunc) else "elementwise"

    def plain(*numbers: Any) -> Any:
        try:
            return np.float64(function(*numbers))
        except OverflowError:  # as NumPy has it: a trace that runs at other inputs may leave the domain
            return np.float64(np.inf)
        except ValueError:
            return np.float64(np.nan)

    plain.pyfunc = function  # type: ignore[attr-defined]
    tracer.spellings[plain] = text

    def call(*args: Any) -> Any:
        if not holds_traced(args):
            return function(*args)
        if name in ("floor", "ceil", "trunc"):
            return function(bare(args[0]))
        return tracer.apply(name, plain, [a.item() if type(a) is TracedArray else a for a in args], {})

    return call


def _builtins(tracer: Tracer) -> dict[str, Any]:
    def length(item: Any) -> int:
        text = item.text() if type(item) is TracedArray else ""
        return SymbolicSize(len(item), f"len({text})") if text else len(item)

    return {"len": length, "float": _ScalarType(tracer, float), "int": _ScalarType(tracer, int)}


class TracedGenerator:
    """A random generator: made from a known seed, its draws are values of the trace, else constants."""

    def __init__(self, tracer: Tracer, generator: Any, text: str = "") -> None:
        self._tracer, self.generator = tracer, generator
        self._lines = [text] if text else []  # how it is made, and what was drawn so far

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.generator, name)
        return partial(self._draw, plain) if callable(plain) else plain

    def _draw(self, plain: Any, *args: Any, **options: Any) -> Any:
        args, options = untraced(plain, args), untraced(plain, options)
        tracer, result = self._tracer, plain(*args, **options)
        if not self._lines:
            return tracer.constants(result)
        try:
            given = [literal(a) for a in args] + [f"{n}={literal(a)}" for n, a in options.items()]
        except NoTextError:  # what is drawn from now on cannot be spelled
            self._lines.clear()
            return tracer.constants(result)
        call = f"{plain.__name__}({', '.join(given)})"
        first, *before = self._lines
        text = "\n".join([f"p = {first}", *before, f"p.{call}"]) if before else f"{first}.{call}"
        self._lines.append(f"p.{call}")
        if not isinstance(result, (np.ndarray, np.generic, float, int)):
            return result
        value = result if isinstance(result, (np.ndarray, np.generic)) else np.asarray(result)[()]
        index = tracer.record("draw", lambda text: value, (), {"text": text}, value)
        return TracedArray(tracer, value, index)


def _generator(tracer: Tracer, function: Any, text: str, *args: Any, **options: Any) -> TracedGenerator:
    """Make a generator that remembers its seed."""
    generator = function(*untraced(function, args), **untraced(function, options))
    seed = args[0] if len(args) == 1 and not options else None
    if not isinstance(seed, int) and type(seed) is not TracedArray:
        return TracedGenerator(tracer, generator)
    written = seed.text() if type(seed) is TracedArray else getattr(seed, "text", repr(seed))
    return TracedGenerator(tracer, generator, f"{text}({written})" if written else "")


def untraced(function: Any, given: Any) -> Any:
    """Return the plain values of arguments that nothing is differentiated by."""
    if isinstance(given, (tuple, list)):
        return type(given)(untraced(function, item) for item in given)
    if isinstance(given, dict):
        return {name: untraced(function, item) for name, item in given.items()}
    if type(given) is not TracedArray:
        return given
    name = function.__name__
    if (given.index() is not None and given.dtype.kind == "f") or name == "shuffle":
        raise UntraceableError(f"what {name} gives depends on a computed value")
    return given.plain()


class _ArrayConverter:
    """What NumPy's own source converts its arguments with, which is written in C."""

    def __init__(self, tracer: Tracer, *items: Any) -> None:
        self._arrays = tuple(tracer.array(item) for item in items)

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
        for name, item in function.__globals__.items():
            stays = name.startswith("__") or isinstance(item, type)
            scope[name] = item if stays else stand_in(tracer, item, f"np.{name}")
        scope |= {"__builtins__": builtins, "_array_converter": partial(_ArrayConverter, tracer)}
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


@contextmanager
def traced_scope(tracer: Tracer, scopes: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Replace what the functions of some modules see (`scopes` are their globals), and restore it whatever happens."""
    replaced: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []
    try:
        for scope in scopes:
            found = {n: v for n, v in _builtins(tracer).items() if n not in scope}
            found |= {n: stand_in(tracer, v, n) for n, v in scope.items() if not n.startswith("__")}
            found = {n: v for n, v in found.items() if v is not scope.get(n)}
            replaced.append((scope, found, {n: scope[n] for n in found if n in scope}))
            scope.update(found)
        yield
    finally:
        for scope, found, before in replaced:
            for name, other in found.items():
                # what the function bound anew is its doing, and freed of traces below
                if scope.get(name) is other:
                    scope.pop(name)
                    scope.update({name: before[name]} if name in before else {})
            _free(scope, {name: v for name, v in scope.items() if not name.startswith("__")}, set())


def _free(holder: Any, parts: dict[Any, Any], seen: set[int], depth: int = _CACHED_DEPTH) -> None:
    """Put plain arrays in the place of traced ones in what holds some parts, and within these."""
    for key, part in parts.items():
        if (new := _plain(part, seen, depth)) is not part:
            if isinstance(holder, (dict, list)):
                holder[key] = new
            else:
                setattr(holder, key, new)


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
    if isinstance(item, dict):
        _free(item, dict(item), seen, depth - 1)
    elif isinstance(item, list):
        _free(item, dict(enumerate(item)), seen, depth - 1)
    elif not isinstance(item, (ModuleType, np.ndarray, BuiltinFunctionType)):
        own = getattr(item, "__dict__", {})
        _free(item, {n: v for n, v in own.items() if not n.startswith("__")}, seen, depth - 1)
    return item
