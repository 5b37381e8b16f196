"""An author's own training, step by step: a method that updates, a script's loop, or the gradients with W -= lr dW."""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.adopting.author import AdoptError, Author
from handgrad.adopting.stopwatch import Stopwatch
from handgrad.checking.interfaces import methods_of, script_steps
from handgrad.checking.interfaces.names import RATES, arrays_in, plain, show_path
from handgrad.checking.interfaces.signatures import parameters_of, required
from handgrad.checking.subject import CheckError, Inputs, raised, seeded
from handgrad.errors import HandgradError
from handgrad.rules import show_shape

RATE = 0.1  # where the author names none


class Steps(ABC):
    """A training that goes on from the author's parameters; ``words`` is what a step of it is."""

    words: str

    @abstractmethod
    def run(self) -> object:
        """Do one step."""

    @abstractmethod
    def parameters(self) -> Inputs:
        """Return the author's arrays by name as they are now."""

    def advance(self) -> None:
        """Do one step; raises `CheckError` where the author's functions raise."""
        try:
            with seeded():
                self.run()
        except HandgradError:
            raise
        except Exception as error:
            raise raised(self.words, error, {}) from error

    def seconds(self) -> float:
        """Return how long one step takes the author's functions; it may be done."""
        started = time.perf_counter()
        self.run()
        return time.perf_counter() - started


def steps_of(author: Author, names: Sequence[str]) -> Steps:
    """Return the author's own steps where the program updates itself, else plain gradient descent on some arrays."""
    own = ScriptSteps.of(author) or OwnUpdates.of(author)
    return own if own is not None else GradientSteps(author, names, rate_of(author))


def rate_of(author: Author) -> float:
    """Return the learning rate that the program names, or one of our own; α may be a slope that forward reads."""
    program = author.program
    names = dict(getattr(program.backward or program.forward, "__globals__", {}))
    names |= getattr(program.owner, "__dict__", {}) | program.world
    rates = (v for name, v in names.items() if plain(name) in RATES and isinstance(v, float))
    return next((rate for rate in rates if rate not in author.values.numbers), RATE)


class ScriptSteps(Steps):
    """The lines of a script's loop."""

    words = "one pass of the loop"

    def __init__(self, author: Author, names: dict[str, Any], run: Callable[[], object]) -> None:
        self.author, self.names, self.lines = author, names, run

    @classmethod
    def of(cls, author: Author) -> ScriptSteps | None:
        """Return the steps of a script; None for other programs, and for a script without a loop."""
        found = script_steps(author.program.script) if author.program.script else None
        return cls(author, *found) if found else None

    def run(self) -> object:  # noqa: D102 - as in Steps
        return self.lines()

    def parameters(self) -> Inputs:  # noqa: D102 - as in Steps
        return {n: np.array(self.names[n], np.float64) for n in self.author.arguments}


class OwnUpdates(Steps):
    """A function of the author's that moves the parameters of an object, or of the arrays it is given."""

    def __init__(
        self, author: Author, world: dict[str, Any], functions: Sequence[str | Callable[..., object]]
    ) -> None:
        self.author, self.world, self.functions = author, copy.deepcopy(world), functions
        self.words = f"{author.pair.name}()"

    @classmethod
    def of(cls, author: Author) -> OwnUpdates | None:
        """Return the updates of the function that the program's backward is, or None where it moves nothing.

        One that takes no data is called after the forward, which leaves it what it needs.
        """
        program = author.program
        owner, name = program.owner, author.pair.name
        function = getattr(owner, name, None) if owner is not None else program.backward
        if function is None:
            return None
        world = dict(program.world) | ({"self": owner} if owner is not None else {})
        world |= {n: rate_of(author) for n in required(function) if n not in world and plain(n) in RATES}
        if not set(required(function)) <= set(world):
            return None
        runs = methods_of(owner).forward if owner is not None else None
        first = [runs.__name__] if runs is not None and not required(runs) else []
        before = first if not set(parameters_of(function)) & set(world) else []
        functions = [*before, name] if owner is not None else [function]
        made = cls(author, world, functions)
        start = made.parameters()
        try:
            made.advance()
        except CheckError:  # it takes something else, or needs to be called after another function
            return None
        moved = any(not np.array_equal(value, start[n]) for n, value in made.parameters().items())
        return cls(author, world, functions) if moved else None

    def run(self) -> None:  # noqa: D102 - as in Steps
        for each in self.functions:
            function = getattr(self.world["self"], each) if isinstance(each, str) else each
            function(**{n: self.world[n] for n in parameters_of(function) if n in self.world})

    def seconds(self) -> float:  # noqa: D102 - as in Steps
        functions = [getattr(self.world["self"], f) if isinstance(f, str) else f for f in self.functions]
        given = [{n: self.world[n] for n in parameters_of(f) if n in self.world} for f in functions]
        started = time.perf_counter()
        for function, arguments in zip(functions, given, strict=True):
            function(**arguments)
        return time.perf_counter() - started

    def parameters(self) -> Inputs:  # noqa: D102 - as in Steps
        found = {show_path(path): value for path, value in arrays_in(self.world).items()}
        return {n: np.array(found[n], np.float64) for n in self.author.arguments if n in found}


class GradientSteps(Steps):
    """The author's gradients, each parameter moved by the learning rate times its own."""

    def __init__(self, author: Author, names: Sequence[str], rate: float) -> None:
        self.author, self.rate = author, rate
        self.words = f"forward, backward, W -= {rate:g} dW"
        self.now = {n: np.array(author.inputs[n]) for n in names}

    def run(self) -> None:
        """Do one step; raises `AdoptError` where a gradient has another shape than its parameter."""
        gradients = self.author.gradients({**self.author.inputs, **self.now})
        for name, value in self.now.items():
            if gradients[name].shape != value.shape:
                raise AdoptError(
                    f"d{name} is {show_shape(gradients[name].shape)}, where {name} is {show_shape(value.shape)}"
                )
        self.now = {n: value - self.rate * gradients[n] for n, value in self.now.items()}

    def parameters(self) -> Inputs:  # noqa: D102 - as in Steps
        return dict(self.now)

    def seconds(self) -> float:
        """Return how long forward, backward and the updates take; the parameters stay."""
        pairs = [(np.array(value), np.array(value)) for value in self.now.values()]
        spent = self._watch.seconds({**self.author.inputs, **self.now})
        started = time.perf_counter()
        for value, gradient in pairs:
            value -= self.rate * gradient
        return spent + time.perf_counter() - started

    @cached_property
    def _watch(self) -> Stopwatch:
        return Stopwatch(self.author)
