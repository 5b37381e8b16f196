"""Random numbers of a traced forward: drawn once, and drawn again from the same seed when the trace is replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.symbolic_sizes import SymbolicSize
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer


@dataclass(eq=False)
class SeededDraws:
    """How a generator was made from its seed, and what was drawn from it so far."""

    make: Callable[..., Any]
    text: str  # with the operand's letter in it: "np.random.default_rng(int(a))"
    seed: Any  # a traced array, or a number
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)


def draw(*seed: Any, draws: SeededDraws, count: int) -> Any:
    """Draw again what the call number `count` drew, from a generator made anew."""
    value = seed[0] if seed else draws.seed
    generator = draws.make(int(value) if np.ndim(value) == 0 else value)
    result = None
    for name, args, options in draws.calls[:count]:
        result = getattr(generator, name)(*args, **options)
    return result


class TracedGenerator:
    """A random generator: with a known seed its draws are values of the trace, else constants."""

    def __init__(self, tracer: Tracer, generator: Any, draws: SeededDraws | None = None) -> None:
        self._tracer, self.generator, self._draws = tracer, generator, draws

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.generator, name)
        return (lambda *args, **options: self._draw(plain, args, options)) if callable(plain) else plain

    def _draw(self, plain: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        draws, args, options = self._draws, untraced(plain, args), untraced(plain, options)
        result = plain(*args, **options)
        if draws is None:
            return self._tracer.constants(result)
        draws.calls.append((plain.__name__, args, options))
        if not isinstance(result, (np.ndarray, np.generic, float, int)):
            return result
        value = result if isinstance(result, (np.ndarray, np.generic)) else np.asarray(result)[()]
        operands = [draws.seed] if type(draws.seed) is TracedArray else []
        which = {"draws": draws, "count": len(draws.calls)}
        return TracedArray(self._tracer, value, self._tracer.record("draw", draw, operands, which, value))


class GeneratorMaker:
    """``np.random.default_rng``: makes generators that remember their seed."""

    def __init__(self, tracer: Tracer, function: Any, text: str) -> None:
        self._tracer, self._function, self._text = tracer, function, text

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make a generator."""
        generator = self._function(*untraced(self._function, args), **untraced(self._function, options))
        known = len(args) == 1 and not options and (type(args[0]) is TracedArray or isinstance(args[0], int))
        if not known:
            return TracedGenerator(self._tracer, generator)
        (seed,) = args
        origin = seed.origin if isinstance(seed, SymbolicSize) else seed
        if type(origin) is TracedArray:
            written = "a" if origin is seed else "int(a)"
        else:
            written = seed.text if isinstance(seed, SymbolicSize) else repr(seed)
        draws = SeededDraws(self._function, f"{self._text}({written})", origin)
        return TracedGenerator(self._tracer, generator, draws)


def untraced(function: Any, given: Any) -> Any:
    """Return the plain values of arguments that nothing is differentiated by."""
    if isinstance(given, (tuple, list)):
        return type(given)(untraced(function, item) for item in given)
    if isinstance(given, dict):
        return {name: untraced(function, item) for name, item in given.items()}
    if type(given) is not TracedArray:
        return given
    name = function.__name__
    if (given.index() is not None and given.plain().dtype.kind == "f") or name == "shuffle":
        raise UntraceableError(f"what {name} gives depends on a computed value")
    return given.plain()
