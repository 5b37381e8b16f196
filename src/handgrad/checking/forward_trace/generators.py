"""Random numbers of a recorded forward: drawn once, and drawn again from the same seed when it is replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.statements import Slot, fill
from handgrad.checking.forward_trace.symbolic_sizes import Size
from handgrad.checking.forward_trace.traced_array import TracedArray, UntraceableError
from handgrad.checking.forward_trace.tracer import Tracer

_MAKERS = ("default_rng", "RandomState")
_Call = tuple[str, tuple[Any, ...], dict[str, Any]]


@dataclass(eq=False)
class Recipe:
    """How a generator was made, and what was drawn from it so far."""

    make: Callable[..., Any]
    text: str  # with the operands' letters in it: "np.random.default_rng(int(a))"
    arguments: tuple[Any, ...]
    seeds: tuple[Any, ...]
    calls: list[_Call] = field(default_factory=list)


def draw(*seeds: Any, recipe: Recipe, count: int) -> Any:
    """Draw again what the call number `count` drew, from a generator made anew."""
    generator = recipe.make(*fill(recipe.arguments, seeds))
    result = None
    for name, args, options in recipe.calls[:count]:
        result = getattr(generator, name)(*args, **options)
    return result


class Draws:
    """A random generator, whose draws are values of the trace."""

    def __init__(self, tracer: Tracer, generator: Any, recipe: Recipe | None = None) -> None:
        self._tracer, self.generator, self._recipe = tracer, generator, recipe

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.generator, name)
        if not callable(plain):
            return plain
        if self._recipe is None:
            return constants_only(self._tracer, name, plain)

        def call(*args: Any, **options: Any) -> Any:
            recipe = self._recipe
            assert recipe is not None
            given = tuple(fixed(name, a) for a in args), {n: fixed(name, a) for n, a in options.items()}
            recipe.calls.append((name, *given))
            result = plain(*given[0], **given[1])
            options = {"recipe": recipe, "count": len(recipe.calls)}
            if not isinstance(result, (np.ndarray, np.generic, float, int)):
                return result
            value = result if isinstance(result, (np.ndarray, np.generic)) else np.asarray(result)[()]
            index = self._tracer.record("draw", draw, recipe.seeds, options, value)
            return TracedArray(self._tracer, value, index)

        return call


def constants_only(tracer: Tracer, name: str, function: Any) -> Any:
    """Return a function that takes plain arguments and gives constants."""
    return Maker(tracer, name, function, "") if name in _MAKERS else _Constants(tracer, name, function)


class _Constants:
    def __init__(self, tracer: Tracer, name: str, function: Any) -> None:
        self._tracer, self._name, self._function = tracer, name, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        name = self._name
        result = self._function(
            *[fixed(name, a) for a in args], **{n: fixed(name, a) for n, a in options.items()}
        )
        return constant(self._tracer, result)


class Maker:
    """``np.random.default_rng``: makes generators that remember their seed."""

    def __init__(self, tracer: Tracer, name: str, function: Any, spelling: str) -> None:
        self._tracer, self._name, self._function, self._spelling = tracer, name, function, spelling

    def __instancecheck__(self, instance: Any) -> bool:
        """Tell whether something is a generator of this kind."""
        return isinstance(instance, self._function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make a generator."""
        plain = [fixed(self._name, a) for a in args]
        generator = self._function(*plain, **{n: fixed(self._name, a) for n, a in options.items()})
        if not args or options or plain[0] is None:
            return Draws(self._tracer, generator)
        seeds: list[TracedArray] = []
        parts: list[Any] = []
        texts: list[str] = []
        for item in args:
            origin = item.origin if isinstance(item, Size) else item
            if type(origin) is TracedArray:
                letter = "abc"[len(seeds)] if len(seeds) < 3 else f"v{len(seeds)}"
                parts.append(Slot(len(seeds)))
                seeds.append(origin)
                texts.append(letter if origin is item else f"int({letter})")
            else:
                parts.append(item)
                texts.append(item.text if isinstance(item, Size) else repr(item))
        text = f"{self._spelling or self._name}({', '.join(texts)})"
        return Draws(self._tracer, generator, Recipe(self._make, text, tuple(parts), tuple(seeds)))

    def _make(self, *args: Any) -> Any:
        return self._function(
            *(int(a) if np.ndim(a) == 0 and np.asarray(a).dtype.kind in "iu" else a for a in args)
        )


def fixed(name: str, item: Any) -> Any:
    """Return the plain value of an argument that nothing is differentiated by."""
    if type(item) is TracedArray:
        if (item.index() is not None and item.plain().dtype.kind == "f") or name == "shuffle":
            raise UntraceableError(f"what {name} gives depends on a computed value")
        return item.plain()
    return item


def constant(tracer: Tracer, result: Any) -> Any:
    """Return a result of NumPy's as constants of the trace."""
    if type(result) is np.ndarray and result.dtype.kind in "fiub":
        return tracer.constant(result)
    if type(result) in (tuple, list):
        return type(result)(constant(tracer, part) for part in result)
    if isinstance(result, (np.random.Generator, np.random.RandomState)):
        return Draws(tracer, result)
    return result
