"""Random numbers of a recorded forward: drawn once, and drawn again from the same seed when it is replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.checking.recording.primitives import Slot, fill
from handgrad.checking.recording.sizes import Size
from handgrad.checking.recording.tape import Tape
from handgrad.checking.recording.traced import NotRecordedError, Traced

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
    """A random generator, whose draws are values of the recording."""

    def __init__(self, tape: Tape, generator: Any, recipe: Recipe | None = None) -> None:
        self._tape, self.generator, self._recipe = tape, generator, recipe

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.generator, name)
        if not callable(plain):
            return plain
        if self._recipe is None:
            return constants_only(self._tape, name, plain)

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
            index = self._tape.record("draw", draw, recipe.seeds, options, value)
            return Traced(self._tape, value, index)

        return call


def constants_only(tape: Tape, name: str, function: Any) -> Any:
    """Return a function that takes plain arguments and gives constants."""
    return Maker(tape, name, function, "") if name in _MAKERS else _Constants(tape, name, function)


class _Constants:
    def __init__(self, tape: Tape, name: str, function: Any) -> None:
        self._tape, self._name, self._function = tape, name, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        name = self._name
        result = self._function(
            *[fixed(name, a) for a in args], **{n: fixed(name, a) for n, a in options.items()}
        )
        return constant(self._tape, result)


class Maker:
    """``np.random.default_rng``: makes generators that remember their seed."""

    def __init__(self, tape: Tape, name: str, function: Any, spelling: str) -> None:
        self._tape, self._name, self._function, self._spelling = tape, name, function, spelling

    def __instancecheck__(self, instance: Any) -> bool:
        """Tell whether something is a generator of this kind."""
        return isinstance(instance, self._function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make a generator."""
        plain = [fixed(self._name, a) for a in args]
        generator = self._function(*plain, **{n: fixed(self._name, a) for n, a in options.items()})
        if not args or options or plain[0] is None:
            return Draws(self._tape, generator)
        seeds: list[Traced] = []
        parts: list[Any] = []
        texts: list[str] = []
        for item in args:
            origin = item.origin if isinstance(item, Size) else item
            if type(origin) is Traced:
                letter = "abc"[len(seeds)] if len(seeds) < 3 else f"v{len(seeds)}"
                parts.append(Slot(len(seeds)))
                seeds.append(origin)
                texts.append(letter if origin is item else f"int({letter})")
            else:
                parts.append(item)
                texts.append(item.text if isinstance(item, Size) else repr(item))
        text = f"{self._spelling or self._name}({', '.join(texts)})"
        return Draws(self._tape, generator, Recipe(self._make, text, tuple(parts), tuple(seeds)))

    def _make(self, *args: Any) -> Any:
        return self._function(
            *(int(a) if np.ndim(a) == 0 and np.asarray(a).dtype.kind in "iu" else a for a in args)
        )


def fixed(name: str, item: Any) -> Any:
    """Return the plain value of an argument that nothing is differentiated by."""
    if type(item) is Traced:
        if (item.index() is not None and item.plain().dtype.kind == "f") or name == "shuffle":
            raise NotRecordedError(f"what {name} gives depends on a computed value")
        return item.plain()
    return item


def constant(tape: Tape, result: Any) -> Any:
    """Return a result of NumPy's as constants of the recording."""
    if type(result) is np.ndarray and result.dtype.kind in "fiub":
        return tape.constant(result)
    if type(result) in (tuple, list):
        return type(result)(constant(tape, part) for part in result)
    if isinstance(result, (np.random.Generator, np.random.RandomState)):
        return Draws(tape, result)
    return result
