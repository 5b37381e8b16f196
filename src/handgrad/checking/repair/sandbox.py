"""Running a changed module: in a copy of its names, with a limit of time, against the gradients it is to have."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from handgrad.checking.effort import Effort
from handgrad.checking.repair.module_source import Change, ModuleSource, compile_unit, held, settle
from handgrad.checking.repair.run_limits import Guard, OutOfTimeError
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, copy_of

LARGEST_STATE = 1_000_000  # bytes of arrays in one name of the module
LONGEST_RUN = 10.0  # seconds for the user's own backward
SHORTEST_RUN = 0.2  # a limit on each candidate, against loops without an end only
SLOWER = 20  # than the user's own a candidate may be


@dataclass(frozen=True)
class Target:
    """Inputs and upstream gradients, and the gradients that a backward is to have there.

    Attributes
    ----------
    inputs, upstream
        What backward gets; one upstream gradient for each output.
    gradients
        By argument.
    tolerance
        How far from each a gradient may be, a number or an array.
    """

    inputs: Inputs
    upstream: list[Array]
    gradients: Mapping[str, Array]
    tolerance: Mapping[str, Array | float]

    def met_by(self, name: str, gradient: Array) -> bool:
        """Whether a gradient of one argument is what it is to be."""
        wanted = self.gradients[name]
        if gradient.shape != wanted.shape or gradient.dtype.kind not in "fiub":
            return False
        return bool((np.abs(gradient - wanted) <= self.tolerance[name]).all())  # false where it is NaN

    def met(self, gradients: Gradients) -> frozenset[str]:
        """Return the arguments whose gradients are what they are to be."""
        return frozenset(
            name for name in self.gradients.keys() & gradients.keys() if self.met_by(name, gradients[name])
        )


Met = frozenset[str]
"""What holds of a candidate: the arguments whose gradients are met, and ``"x is unchanged"`` for what backward got."""

NOTHING: Met = frozenset()


class Sandbox:
    """Runs a source's backward, as it is or changed."""

    def __init__(
        self, source: ModuleSource, subject: Subject, target: Target, guard: Guard, effort: Effort
    ) -> None:
        self.source, self.subject, self.target, self.guard, self.effort = (
            source,
            subject,
            target,
            guard,
            effort,
        )
        self._state = {name: value for name, value in source.globals.items() if self._may_change(name, value)}
        self._forward_units = frozenset(source.reachable(source.forward))
        self.output = subject.run_forward(target.inputs)
        self.compiling = float(sum(1 for _ in ast.walk(source.tree)))
        self.running = 0.0  # known when it has been traced
        self._limit, self.base = LONGEST_RUN, NOTHING
        started = time.perf_counter()
        self.base = self.met()
        took = time.perf_counter() - started
        self._limit = max(SHORTEST_RUN, SLOWER * took)
        unchanged = (_unchanged(name) for name in target.inputs)
        self.everything: Met = frozenset(
            [*target.gradients, *unchanged, *map(_unchanged, range(len(target.upstream)))]
        )

    def subject_with(self, change: Change | None = None, extra: Mapping[str, Any] | None = None) -> Subject:
        """Return the user's two functions with a change made, in names of their own.

        Raises
        ------
        SyntaxError, ValueError, TypeError
            When the change is no Python.
        """
        codes = dict(self.source.codes)
        if change is not None:
            for edit in change.edits:
                for new in edit.new if isinstance(edit.new, tuple) else (edit.new,):
                    settle(new, edit.old, self.source)
            take_back = self.source.put(change)
            try:
                for name in {self.source.unit_of(edit.old) for edit in change.edits}:
                    codes[name] = compile_unit(self.source.units[name], str(self.source.path))
            finally:
                take_back()
        return self.assemble(codes, extra)

    def assemble(self, codes: Mapping[str, CodeType], extra: Mapping[str, Any] | None = None) -> Subject:
        """Return the two functions from compiled units, in a copy of the module's names."""
        state = copy.deepcopy(self._state)
        names = {**self.source.globals, **state, **(extra or {})}
        for name, value in self.source.globals.items():
            if (
                isinstance(value, FunctionType)
                and value.__globals__ is self.source.globals
                and name not in codes
            ):
                names[name] = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
        for code in codes.values():
            exec(code, names)  # the user's own functions, once more
        for value in state.values():
            self._adopt(value, names)
        forward = names[self.source.forward] if self.source.forward else self.subject.forward
        return replace(self.subject, forward=forward, backward=names[self.source.backward])

    def names(self) -> dict[str, Any]:
        """Return a copy of the module's names, in which its functions see each other."""
        found: dict[str, Any] = self.assemble(self.source.codes).backward.__globals__
        return found

    def _may_change(self, name: str, value: Any) -> bool:
        """Whether a name of the module holds something that calls may change."""
        own = bool(self.source.classes_of(value))
        state = own or isinstance(value, dict | list | set | np.ndarray)
        return state and not name.startswith("__") and _can_be_copied(value)

    def _adopt(self, value: Any, names: Mapping[str, Any]) -> None:
        """Make objects of the file's classes objects of the changed ones."""
        for item in held(value):
            if self.source.classes_of(item):
                item.__class__ = names[type(item).__name__]

    def pay(self, runs: float) -> None:
        """Count some runs of backward."""
        self.effort.spend(runs * self.running)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Let a candidate run, but not for ever."""
        self.pay(1)
        try:
            with self.guard.limit(self._limit):
                yield
        except OutOfTimeError:
            self.effort.spend(1e6 * self._limit)
            raise

    def met(self, change: Change | None = None) -> Met:
        """Return what holds of the backward with a change made."""
        self.effort.spend(self.compiling)
        try:
            subject = self.subject_with(change)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return NOTHING
        if not self._state:  # nothing is kept from one call to the next: forward need not run first
            subject = replace(subject, forward=_nothing)
        touched = {self.source.unit_of(edit.old) for edit in change.edits} if change else set()
        try:
            with self._limited():
                found = self._met(subject)
                shared = found != self.base and touched & self._forward_units
                return found if not shared or self._forward_holds(change) else NOTHING
        except (CheckError, OutOfTimeError, MemoryError):
            return NOTHING

    def _met(self, subject: Subject) -> Met:
        inputs, target = copy_of(self.target.inputs), self.target
        upstream = [np.array(part) for part in target.upstream]
        gradients = subject.run_backward(upstream, inputs, fresh=False)
        if gradients.keys() != target.gradients.keys():
            return NOTHING
        unchanged = {_unchanged(name) for name, value in inputs.items() if _same(value, target.inputs[name])}
        unchanged |= {_unchanged(k) for k, part in enumerate(upstream) if _same(part, target.upstream[k])}
        met = target.met(gradients)
        if not met | unchanged <= self.base:
            met &= target.met(
                subject.run_backward(target.upstream, target.inputs)
            )  # and when it is called again
        return met | unchanged

    def _forward_holds(self, change: Change | None) -> bool:
        """Whether a change leaves forward's result as it was."""
        output = self.subject_with(change).run_forward(self.target.inputs)
        return len(output) == len(self.output) and all(map(_same, output, self.output))


def _unchanged(name: str | int) -> str:
    return f"{name} is unchanged"


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: stand in for a forward that need not run."""


def _can_be_copied(value: Any) -> bool:
    """Whether an object is copied for every candidate; data, and what holds a module or a lock, stay the user's."""
    if sum(item.nbytes for item in held(value) if isinstance(item, np.ndarray)) > LARGEST_STATE:
        return False
    try:
        copy.deepcopy(value)
    except Exception:  # whatever the object's own code raises
        return False
    return True


def _same(value: Any, other: Any) -> bool:
    if value.dtype == other.dtype and value.shape == other.shape and value.tobytes() == other.tobytes():
        return True
    return np.array_equal(value, other, equal_nan=value.dtype.kind == "f")
