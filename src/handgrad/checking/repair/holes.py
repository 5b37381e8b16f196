"""The value that an expression should have had.

An expression of the user's backward is taken out and its value varied. Most of a backward is linear in each of its
values, so a few runs tell which value, if any, would have made the gradients right. That finds the place of the
mistake without knowing the mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from handgrad.checking.repair.guard import OutOfTimeError
from handgrad.checking.repair.places import Place, is_float
from handgrad.checking.repair.returned import slots
from handgrad.checking.repair.source import Change, Edit
from handgrad.checking.repair.trial import Bench
from handgrad.checking.subject import Array, CheckError, Subject

MOST_ENTRIES = 128  # of a value that is varied
LINEAR = 1e-2  # how well a linear function must be met, in units of the tolerance
HOLE = "__hole__"


@dataclass(frozen=True)
class Hole:
    """An expression whose value can be chosen so that gradients become right.

    Attributes
    ----------
    place
        The expression.
    target
        The value it should have had, or None where several would do.
    start, jacobian, wanted
        ``jacobian @ (value - start) == wanted`` says whether a value would do.
    tolerance
        How well it must be met, relative to the largest number.
    mended
        How many wrong gradients become right.
    """

    place: Place
    target: Array | None
    start: Array
    jacobian: Array
    wanted: Array
    tolerance: float
    mended: int

    def suits(self, values: Array) -> Array:
        """Return which rows of values would do."""
        missed = (values - self.start.ravel()) @ self.jacobian.T - self.wanted
        found: Array = np.abs(missed).max(axis=1, initial=0) <= self.tolerance * np.abs(self.wanted).max(
            initial=0
        )
        return found

    def multiples(self, values: Array) -> list[tuple[int, float]]:
        """Return which rows of values would do when multiplied, with the factor."""
        images = values @ self.jacobian.T
        image = self.wanted + self.jacobian @ self.start.ravel()
        size = (images**2).sum(axis=1)
        factors = images @ image / np.where(size > 0, size, 1)
        missed = np.abs(factors[:, None] * images - image).max(axis=1, initial=0)
        fits = (missed <= self.tolerance * np.abs(image).max(initial=0)) & (factors != 0)
        return [(int(k), float(factors[k])) for k in np.flatnonzero(fits)] if image.size > 1 else []


class Holes:
    """Looks for the expressions that are to blame.

    Attributes
    ----------
    found
        The expressions that, with another value, would have made a wrong gradient right.
    hopeless
        The others in which backward is linear, by the id of their node: no other value there mends anything.
    """

    def __init__(self, bench: Bench, places: list[Place], *, until: float) -> None:
        self.bench = bench
        self.names = list(bench.goal.right)
        self.right = [np.asarray(bench.goal.right[name], float).ravel() for name in self.names]
        self.wrong = [name for name in self.names if name not in bench.base.right]
        self.certain = [bench.goal.certain(name).ravel() for name in self.names]
        self.tolerance = bench.goal.tolerance
        self.hopeless: set[int] = set()
        self._repeated = any(
            is_float(place.value) and place.facts.counts[id(place.node)] > 1 for place in places
        )
        self.found = list(self._find(places, until))
        self.hopeless -= {id(hole.place.node) for hole in self.found}

    @property
    def one_may_do(self) -> bool:
        """Whether one expression could mend everything: it is known to, or is evaluated several times."""
        return self._repeated or any(hole.mended == len(self.wrong) for hole in self.found)

    def _find(self, places: list[Place], until: float) -> Iterator[Hole]:
        returned = self._returned()
        for place in places:
            if self.bench.effort.spent > until:
                return
            if place.facts.counts[id(place.node)] != 1 or not is_float(place.value):
                continue
            if id(place.node) in returned:
                yield self._handed_out(place, returned[id(place.node)])
            elif np.size(place.value) <= MOST_ENTRIES and not isinstance(place.node, ast.Constant):
                yield from self._vary(place)

    def _handed_out(self, place: Place, name: str) -> Hole:
        """Return the hole that is a gradient itself."""
        right = np.asarray(self.bench.goal.right[name], float)
        sure = self.certain[self.names.index(name)]
        if sure.all() or right.size > MOST_ENTRIES:
            return Hole(place, right, right, np.zeros((0, right.size)), np.zeros(0), self.tolerance, 1)
        rows, wanted = np.eye(right.size)[sure], right.ravel()[sure]
        return Hole(place, None, np.zeros_like(right), rows, wanted, self.tolerance, 1)

    def _returned(self) -> dict[int, str]:
        """Return the expressions that are handed out as a wrong argument's gradient, by the id of their node."""
        source = self.bench.source
        return {
            id(slot): name
            for node in ast.walk(source.units[source.backward])
            if isinstance(node, ast.Return)
            for name, slot in slots(node, self.bench.subject).items()
            if name in self.wrong
        }

    def _vary(self, place: Place) -> Iterator[Hole]:
        """Vary an expression's value and solve for the one that would have been right."""
        old = np.asarray(place.value, float)
        start = old if np.isfinite(old).all() else np.zeros_like(old)
        change = Change((Edit(place.node, ast.Name(HOLE, ast.Load())),), 0)
        try:
            subject = self.bench.subject_with(change, {HOLE: start})
        except (SyntaxError, ValueError, TypeError):
            return
        at_start = self._run(subject, start)
        if at_start is None:
            return
        jacobian = self._jacobian(subject, start, at_start)
        if jacobian is None:
            return
        self.hopeless.add(id(place.node))
        for chosen in self._subsets(jacobian):
            rows = np.concatenate([jacobian[k][self.certain[k]] for k in chosen])
            wanted = np.concatenate([(self.right[k] - at_start[k])[self.certain[k]] for k in chosen])
            if not np.isfinite(wanted).all():
                continue
            self.bench.effort.spend(3e-4 * rows.size * rows.shape[1])
            change_of, _, rank, _ = np.linalg.lstsq(rows, wanted, rcond=1e-10)
            if np.all(
                np.abs(rows @ change_of - wanted) <= self.tolerance * np.abs(wanted).max(initial=1e-300)
            ):
                target = start + change_of.reshape(old.shape) if rank == old.size else None
                mended = sum(self.names[k] in self.wrong for k in chosen)
                yield Hole(place, target, start, rows, wanted, self.tolerance, mended)
                return

    def _subsets(self, jacobian: list[Array]) -> Iterator[list[int]]:
        """Yield the gradients to be made right: all that depend on the value, or else fewer of the wrong ones."""
        reached = [k for k, rows in enumerate(jacobian) if np.any(rows)]
        wrong = [k for k in reached if self.names[k] in self.wrong]
        held = [k for k in reached if k not in wrong]
        for size in range(len(wrong), 0, -1):
            for some in combinations(wrong, size):
                yield [*held, *some]

    def _jacobian(self, subject: Subject, start: Array, at_start: list[Array]) -> list[Array] | None:
        """Return how each gradient depends on the value, or None where that is not linear."""
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, *start.shape)) * (np.abs(start).max() or 1.0)
        runs = [self._run(subject, start + step) for step in (a, b, a + b)]
        for k, origin in enumerate(at_start):
            values = [run[k] for run in runs if run is not None]
            if len(values) < 3 or any(value.shape != origin.shape for value in values):
                return None
            size = np.abs(values[2] - origin).max(initial=0)
            if not np.all(
                np.abs(values[0] + values[1] - origin - values[2]) <= LINEAR * self.tolerance * size
            ):
                return None
        columns = []
        for index in np.ndindex(start.shape):
            moved = start.copy()
            moved[index] += 1
            run = self._run(subject, moved)
            if run is None:
                return None
            columns.append([value - origin for value, origin in zip(run, at_start, strict=True)])
        return [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]

    def _run(self, subject: Subject, value: Array) -> list[Array] | None:
        """Return the gradients with a value put in; those of a wrong shape count as empty."""
        subject.backward.__globals__[HOLE] = value.copy() if value.ndim else value[()]
        try:
            gradients = self.bench.gradients(subject)
        except (CheckError, OutOfTimeError, MemoryError):
            return None
        if gradients.keys() != set(self.names):
            return None
        found = [np.asarray(gradients[name], float).ravel() for name in self.names]
        return [
            value if value.shape == right.shape else np.full(right.shape, np.nan)
            for value, right in zip(found, self.right, strict=True)
        ]
