"""Stretches of forward with a derivative of their own: a sigmoid is four operations, and one in its author's head.

A region leads from a value a to a value b of the same shape. Where every operation between works entry by entry its
Jacobian is a diagonal; elsewhere (softmax, a normalisation) it is a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.diagnosis.replayed import Replay, Replays
from handgrad.checking.forward_trace import Operation
from handgrad.checking.subject import Array

LONGEST = 16  # operations of a region
LARGEST = 150  # entries of a value whose Jacobian is computed


@dataclass(frozen=True)
class Region:
    """The operations from a value to another of the same shape."""

    start: int
    end: int
    operations: tuple[Operation, ...]
    diagonal: bool

    def flow(self, replayed: Replay, gradient: Any) -> Array:
        """Carry a gradient of the end back to the start."""
        found = adjoints(
            replayed.recording, replayed.values, None, seeds={self.end: gradient}, until=[self.start]
        )
        return np.asarray(found.get(self.start, np.zeros(np.shape(replayed.values[self.start]))))

    def skipped(self, replayed: Replay) -> Any:
        """Hand the gradient of the end on to the start unchanged."""
        return replayed.gradients[self.end]

    def twice(self, replayed: Replay) -> Any:
        """Carry the gradient of the end back two times."""
        return self.flow(replayed, self.flow(replayed, replayed.gradients[self.end]))

    def slope_at(self, replayed: Replay, point: Any) -> Array:
        """Return the slopes of a diagonal region at another point than its own."""
        values = list(replayed.values)
        values[self.start] = point
        for operation in self.operations:
            values[operation.output] = operation.run(values)
        ones = np.ones(np.shape(values[self.end]))
        found = adjoints(replayed.recording, values, None, seeds={self.end: ones}, until=[self.start])
        return np.asarray(found.get(self.start, np.zeros(np.shape(point))))


def regions(replays: Replays) -> Iterator[Region]:
    """Yield every region, the shortest first."""
    recording = replays.recording
    values = replays.first.values
    found: list[Region] = []
    for end in (
        operation.output for operation in recording.operations if operation.output in recording.active
    ):
        if replays.late:
            break
        ancestors = replays.ancestors(end)
        for start in ancestors & recording.active - {end}:
            if np.shape(values[start]) != np.shape(values[end]) or end not in replays.first.gradients:
                continue
            between = _between(replays, start, end, ancestors)
            if 0 < len(between) <= LONGEST:
                diagonal = all(
                    o.kind == "elementwise" and np.shape(values[o.output]) == np.shape(values[end])
                    for o in between
                )
                found.append(Region(start, end, between, diagonal))
    yield from sorted(found, key=lambda region: (not region.diagonal, len(region.operations)))


def _between(replays: Replays, start: int, end: int, ancestors: frozenset[int]) -> tuple[Operation, ...]:
    reached, between = {start}, []
    for operation in replays.recording.operations:
        if operation.output in ancestors and any(i in reached for i in operation.inputs):
            reached.add(operation.output)
            between.append(operation)
    return tuple(between)


@dataclass(frozen=True)
class Reach:
    """How a gradient added at a value reaches the wrong arguments, as one matrix: a quick look before a careful one."""

    matrix: Array | None
    off: Array

    def allows(self, added: Array) -> bool:
        """Whether a gradient added at the value may explain some argument; without a matrix any may."""
        if self.matrix is None:
            return True
        with np.errstate(all="ignore"):
            reached = self.matrix @ np.ravel(added)
        return bool(np.all(np.abs(reached - self.off) <= 1e-5 * np.abs(self.off).max(initial=0)))


def reach(replays: Replays, value: int) -> Reach:
    """Find how a gradient at a value reaches the wrong arguments of the first sample."""
    replayed = replays.first
    size = int(np.size(replayed.values[value]))
    off = np.concatenate([replayed.off(name).ravel() for name in replays.wrong])
    if size > LARGEST:
        return Reach(None, off)
    columns = []
    replays.pay(size)
    for position in range(size):
        basis = np.zeros(size)
        basis[position] = 1
        spread = replayed.spread({value: basis.reshape(np.shape(replayed.values[value]))})
        columns.append(np.concatenate([spread[name].ravel() for name in replays.wrong]))
    matrix = np.stack(columns, axis=1)
    return Reach(matrix if np.all(np.isfinite(matrix)) else None, off)
