"""How long the author's functions take, without what calls them with arrays by name."""

from __future__ import annotations

import copy
import time
from types import FunctionType
from typing import Any

from handgrad.adopting.author import Author
from handgrad.checking.interfaces import pair_of
from handgrad.checking.subject import Inputs


class Stopwatch:
    """The author's functions, each timed from outside: what calls them with arrays by name is not the author's."""

    def __init__(self, author: Author) -> None:
        self.author = author
        self.spent: dict[str, list[float]] = {}
        self.running = False
        program = author.program
        forward, backward = program.forward, program.backward
        if isinstance(forward, FunctionType):
            pair = pair_of(self.timed(forward), self.timed(backward) if backward else None, program.example)
        else:
            owner = copy.copy(program.owner)
            kind = type(owner)
            methods = {
                n: f
                for each in kind.__mro__[::-1]
                for n, f in vars(each).items()
                if isinstance(f, FunctionType)
            }
            public = {
                n: self.timed(f) for n, f in methods.items() if not n.startswith("__") or n == "__call__"
            }
            # the author's class may have slots, or be frozen
            body = {**public, "__module__": kind.__module__, "__slots__": ()}
            object.__setattr__(owner, "__class__", type(kind.__name__, (kind,), body))
            chosen = getattr(forward, "__name__", "") if forward is not program.owner else ""
            pair = pair_of(getattr(owner, chosen) if chosen else owner, backward, program.example)
        self.pair = pair

    def timed(self, function: Any) -> Any:
        """Return a function that does the same, and notes how long it takes unless a timed one calls it."""
        watch, clock, name = self, time.perf_counter, function.__name__

        def measured(*args: Any, **options: Any) -> Any:
            if watch.running:
                return function(*args, **options)
            watch.running, started = True, clock()
            try:
                return function(*args, **options)
            finally:
                watch.spent.setdefault(name, []).append(clock() - started)
                watch.running = False

        made = FunctionType(measured.__code__, function.__globals__, name, None, measured.__closure__)
        made.__wrapped__ = function  # type: ignore[attr-defined]
        made.__module__, made.__qualname__ = function.__module__, function.__qualname__
        return made

    def seconds(self, inputs: Inputs) -> float:
        """Return how long one forward and one backward take."""
        self.spent.clear()
        author = self.author
        upstream = author.upstream(inputs)
        self.pair.forward(**inputs)
        self.pair.backward(upstream[()] if upstream.ndim == 0 else upstream, **inputs)
        return sum(min(times) for times in self.spent.values())
