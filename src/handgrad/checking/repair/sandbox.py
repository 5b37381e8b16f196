"""Where a changed module runs: in a copy of its state, and compared with the gradients that are right."""

from __future__ import annotations

import ast
import contextlib
import copy
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.live_code import Codes, names_used
from handgrad.checking.live_code import running as exchanged_code
from handgrad.checking.repair.guard import LONGEST_RUN, Guard, OutOfTimeError
from handgrad.checking.repair.module_source import Change, ModuleSource, held
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, copy_of

LARGEST_STATE = 1_000_000  # bytes of arrays in one name of the module: what is larger is not copied
SHORTEST_RUN = 0.2  # a limit on each candidate, against loops without an end only
SOME = 0.05  # of a gradient's entries are right with one of two mistakes mended
SLOWER = 20  # than the user's own a candidate may be

Met = frozenset[str]
"""What holds of a candidate: the arguments whose gradients are met, and ``"x is unchanged"`` for what backward got."""

NOTHING: Met = frozenset()


@dataclass(frozen=True)
class Target:
    """What a backward gets, one upstream gradient for each output, and the gradients that it is to return."""

    inputs: Inputs
    upstream: list[Array]
    gradients: Mapping[str, Array]
    tolerance: Mapping[str, Array | float]  # how far from each a gradient may be

    def met_by(self, name: str, gradient: Array) -> bool:
        """Whether a gradient of one argument is what it is to be."""
        wanted = self.gradients[name]
        if gradient.shape != wanted.shape or gradient.dtype.kind not in "fiub":
            return False
        return bool((np.abs(gradient - wanted) <= self.tolerance[name]).all())  # false where it is NaN

    def met(self, gradients: Gradients) -> frozenset[str]:
        """Return the arguments whose gradients are what they are to be."""
        names = self.gradients.keys() & gradients.keys()
        return frozenset(name for name in names if self.met_by(name, gradients[name]))

    def entries(self, name: str, gradient: Array) -> Array:
        """Return which entries of a gradient are what they are to be; none where its shape is another."""
        wanted = self.gradients[name]
        if gradient.shape != wanted.shape:
            return np.zeros(wanted.shape, bool)
        return np.asarray(np.abs(gradient - wanted) <= self.tolerance[name])


class Sandbox:
    """Runs a source's backward, as it is or changed."""

    def __init__(self, source: ModuleSource, subject: Subject, target: Target, guard: Guard) -> None:
        self.source, self.subject, self.target, self.guard = source, subject, target, guard
        used = {name for each in source.definitions for name in names_used(each.__code__)}
        known = {name: value for name, value in source.globals.items() if name in used}
        self._state = {name: value for name, value in known.items() if self._may_change(name, value)}
        with self.changed():  # backward may begin with what this leaves
            self.output = subject.run_forward(target.inputs)
        self.compiling = sum(1.0 for unit in source.units for _ in ast.walk(unit))  # microseconds
        self.running = 0.0  # microseconds, known when it has been observed
        self._limit, self.base = LONGEST_RUN, NOTHING
        self.misplaced = set(target.gradients)  # before any change
        self._entries: dict[str, Array] = {}  # of the wrong gradients, those that are right as it is
        started = time.thread_time()
        self.base = self.met()
        self.misplaced = self._misplaced()
        self._limit = max(SHORTEST_RUN, SLOWER * (time.thread_time() - started))
        everything = [*target.inputs, *range(len(target.upstream))]
        self.everything: Met = frozenset([*target.gradients, *map(_unchanged, everything)])

    @contextlib.contextmanager
    def changed(self, change: Change | None = None) -> Iterator[None]:
        """Let the author's functions run with a change made, and with the module's state for themselves.

        SyntaxError, ValueError and TypeError mean that the change is no Python.
        """
        codes = dict(self.source.codes)
        if change is not None:
            with self.source.edited(change.edits):
                for unit in {
                    id(u): u for u in (self.source.unit(edit.old) for edit in change.edits)
                }.values():
                    codes |= self.source.compile(unit)
        with self.running_codes(codes):
            yield

    @contextlib.contextmanager
    def running_codes(self, codes: Codes, names: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Let functions run other code, with more names in their module, and with the module's state for themselves."""
        module = self.source.globals
        with exchanged_code(codes, names):
            module.update(copy.deepcopy(self._state))
            try:
                yield
            finally:
                module.update(self._state)

    @property
    def names(self) -> dict[str, Any]:
        """The names of the module, as the functions that run here see them."""
        bound = getattr(self.subject.backward, "bound", None)
        known = self.source.globals
        return known if bound is None else {name: bound(value) for name, value in known.items()}

    def met(self, change: Change | None = None) -> Met:
        """Return what holds of the backward with a change made."""
        self.guard.spend(self.compiling)
        try:
            with self.changed(change), self.guard.limit(self._limit):
                self.guard.spend(self.running)
                found = self._met()
                if change is not None and found != self.base and self._changes_forward(change):
                    output = self.subject.run_forward(self.target.inputs)
                    if len(output) != len(self.output) or not all(map(_same, output, self.output)):
                        return NOTHING  # forward was changed to fit
                return found
        except OutOfTimeError:
            self.guard.spend(1e6 * self._limit)
            return NOTHING
        except (CheckError, MemoryError):  # a candidate that raises meets nothing
            return NOTHING
        except (SyntaxError, ValueError, TypeError, RecursionError):  # no Python
            return NOTHING

    def _met(self) -> Met:
        target, inputs = self.target, copy_of(self.target.inputs)
        upstream = [np.array(part) for part in target.upstream]
        forward = bool(self._state)  # else nothing is saved from one call to the next, and it need not run
        gradients = self.subject.run_backward(upstream, inputs, fresh=False, forward=forward)
        if gradients.keys() != target.gradients.keys():
            return NOTHING
        unchanged = {_unchanged(name) for name, value in inputs.items() if _same(value, target.inputs[name])}
        unchanged |= {_unchanged(k) for k, part in enumerate(upstream) if _same(part, target.upstream[k])}
        met = target.met(gradients) - (self._misplaced() - self.misplaced) | self._nearer(gradients)
        if not met | unchanged <= self.base:  # and when it is called again
            again = self.subject.run_backward(target.upstream, target.inputs)
            met &= target.met(again) | self._nearer(again)
        return met | unchanged

    def _misplaced(self) -> set[str]:
        """Return the last gradients that are in another layout than their arrays, (10,) for (10, 1): none is mended so."""
        return set(getattr(self.subject.backward, "misplaced", ()))

    def _nearer(self, gradients: Gradients) -> Met:
        """Return which gradients have more right entries than before, and no other wrong: one of two mistakes is mended.

        A zero that is right proves nothing: what cuts the path has it too.
        """
        entries = {
            name: self.target.entries(name, gradient)
            for name, gradient in gradients.items()
            if name in self.target.gradients and not self.target.met_by(name, gradient)
        }
        if not self.base:
            self._entries = entries
        known = {name: self._entries[name] for name in entries.keys() & self._entries.keys()}
        return frozenset(
            f"more of {name}"
            for name, before in known.items()
            if np.mean(entries[name] & ~before & (self.target.gradients[name] != 0)) > SOME
            and not np.any(before & ~entries[name])
        )

    def _changes_forward(self, change: Change) -> bool:
        """Whether a change is of a function that forward runs too."""
        return any(self.source.holding(edit.old) & self.source.forward for edit in change.edits)

    def _may_change(self, name: str, value: Any) -> bool:
        """Whether a name of the module holds something that calls may change, and that can be copied."""
        own = self.source.has_class_of(value)
        if name.startswith("__") or not (own or isinstance(value, dict | list | set | np.ndarray)):
            return False
        if sum(item.nbytes for item in held(value) if isinstance(item, np.ndarray)) > LARGEST_STATE:
            return False
        try:
            copy.deepcopy(value)
        except Exception:  # whatever the object's own code raises: it holds a module, a lock
            return False
        return True


def _unchanged(name: str | int) -> str:
    return f"{name} is unchanged"


def _same(value: Any, other: Any) -> bool:
    if value.dtype == other.dtype and value.shape == other.shape and value.tobytes() == other.tobytes():
        return True
    return np.array_equal(value, other, equal_nan=value.dtype.kind == "f")
