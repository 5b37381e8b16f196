"""Running a changed module: in a copy of its names, with a limit of time, against the gradient known to be right."""

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
from handgrad.checking.repair.guard import Guard, OutOfTimeError
from handgrad.checking.repair.source import Change, Source, compile_unit, held, settle
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, copy_of

LARGEST_STATE = 1_000_000  # bytes of arrays in one name of the module
LONGEST_RUN = 10.0  # seconds for the user's own backward
SHORTEST_RUN = 0.2  # a limit on each candidate, against loops without an end only
KINK = 1e-3  # of the largest entry: slack that is larger is a gap between two one-sided slopes
SLOWER = 20  # than the user's own a candidate may be


@dataclass(frozen=True)
class Goal:
    """One draw of the inputs, and the gradients that are right there.

    Attributes
    ----------
    inputs, upstream
        What backward is given; one upstream gradient for each output.
    right
        The right gradient of each argument that is judged.
    slack
        How far from it is still right, a number or an array each: the error bar, and half the gap at a kink.
    """

    inputs: Inputs
    upstream: list[Array]
    right: Mapping[str, Array]
    slack: Mapping[str, Array | float]

    @property
    def tolerance(self) -> float:
        """How well the right gradients are known, relative to their largest entries."""
        known = [
            float(np.max(np.broadcast_to(self.slack[name], right.shape)[self.certain(name)], initial=0))
            / (float(np.abs(right).max(initial=0)) or 1.0)
            for name, right in self.right.items()
        ]
        single = any(value.dtype == np.float32 for value in self.inputs.values())
        return float(np.clip(max(known, default=0.0), 1e-4 if single else 1e-7, KINK))

    def certain(self, name: str) -> Array:
        """Return which entries of a right gradient are one number, and not anything in a gap at a kink."""
        right = np.asarray(self.right[name])
        sure: Array = np.broadcast_to(self.slack[name], right.shape) <= KINK * np.abs(right).max(initial=0)
        return sure

    def meets(self, name: str, gradient: Array) -> bool:
        """Whether a gradient of one argument is right."""
        right = self.right[name]
        if gradient.shape != right.shape or gradient.dtype.kind not in "fiub":
            return False
        return bool(np.all(np.abs(gradient - right) <= self.slack[name]))  # false where it is NaN


@dataclass(frozen=True)
class Score:
    """What holds of a candidate.

    Attributes
    ----------
    right
        The arguments whose gradients are right, both times that backward was called.
    kept
        The inputs that backward left alone (the upstream gradients by number).
    """

    right: frozenset[str]
    kept: frozenset[str | int]

    def beats(self, other: Score) -> bool:
        """Whether it is better somewhere and nowhere worse."""
        return self != other and self.right >= other.right and self.kept >= other.kept


FAILED = Score(frozenset(), frozenset())


class Bench:
    """Runs a source's backward, as it is or changed."""

    def __init__(self, source: Source, subject: Subject, goal: Goal, guard: Guard, effort: Effort) -> None:
        self.source, self.subject, self.goal, self.guard, self.effort = source, subject, goal, guard, effort
        self._state = {name: value for name, value in source.globals.items() if self._may_change(name, value)}
        self._forward_units = frozenset(source.reachable(source.forward))
        self.output = subject.run_forward(goal.inputs)
        self.compiling = float(sum(1 for _ in ast.walk(source.tree)))
        self.running = 0.0  # known when it has been traced
        self._limit, self.base = LONGEST_RUN, FAILED
        started = time.perf_counter()
        self.base = self.score()
        took = time.perf_counter() - started
        self._limit = max(SHORTEST_RUN, SLOWER * took)
        self.everything = Score(frozenset(goal.right), frozenset([*goal.inputs, *range(len(goal.upstream))]))

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
                    settle(new, edit.old, self.source.numpy)
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

    def gradients(self, subject: Subject) -> Gradients:
        """Return what a backward gives for the goal's draw, or raise CheckError."""
        with self._limited():
            return subject.run_backward(self.goal.upstream, self.goal.inputs)

    def score(self, change: Change | None = None) -> Score:
        """Return what holds of the backward with a change made."""
        self.effort.spend(self.compiling)
        try:
            subject = self.subject_with(change)
        except (SyntaxError, ValueError, TypeError, RecursionError):
            return FAILED
        if not self._state:  # nothing is kept from one call to the next: forward need not run first
            subject = replace(subject, forward=_nothing)
        touched = {self.source.unit_of(edit.old) for edit in change.edits} if change else set()
        try:
            with self._limited():
                found = self._score(subject)
                shared = found != self.base and touched & self._forward_units
                return found if not shared or self._forward_holds(change) else FAILED
        except (CheckError, OutOfTimeError, MemoryError):
            return FAILED

    def _score(self, subject: Subject) -> Score:
        inputs = copy_of(self.goal.inputs)
        upstream = [np.array(part) for part in self.goal.upstream]
        gradients = subject.run_backward(upstream, inputs, fresh=False)
        if gradients.keys() != self.goal.right.keys():
            return FAILED
        kept = {name for name, value in inputs.items() if _same(value, self.goal.inputs[name])}
        kept_upstream = {k for k, part in enumerate(upstream) if _same(part, self.goal.upstream[k])}
        right = {name for name, value in gradients.items() if self.goal.meets(name, value)}
        if right - self.base.right or kept | kept_upstream > self.base.kept:
            again = subject.run_backward(self.goal.upstream, self.goal.inputs)
            right = {name for name in right & again.keys() if self.goal.meets(name, again[name])}
        return Score(frozenset(right), frozenset(kept | kept_upstream))

    def _forward_holds(self, change: Change | None) -> bool:
        """Whether a change leaves forward's result as it was."""
        output = self.subject_with(change).run_forward(self.goal.inputs)
        return len(output) == len(self.output) and all(map(_same, output, self.output))


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Stand for a forward that need not run."""


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
    return np.array_equal(value, other, equal_nan=value.dtype.kind == "f")
