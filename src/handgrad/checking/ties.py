"""Entries that tie: of a maximum, of a sorted order. One by one they may have any share of a slope, together only all.

Entry by entry, everything between the two one-sided slopes is allowed at a kink. Where several entries of the same
size stand at one kink, there is more to know: moved together they keep their tie, forward is smooth on the way, and
what the gradient says of that way is right or wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from handgrad.checking.numerics import Slopes, slopes
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject

MOST = 24  # ties that are looked at, the largest first
MOST_TIED = 64  # entries of one tie
STEP = 1e-5  # relative, for telling whether entries meet in one kink or stand at kinks of their own


@dataclass(frozen=True)
class Tie:
    """Entries of equal size that meet at a kink.

    Attributes
    ----------
    directions
        By argument, in its shape: how far each entry moves when all of them move together.
    along
        The slopes of all outputs on that way, (m, 1).
    """

    directions: Mapping[str, Array]
    along: Slopes

    def missed(self, got: Gradients, tolerance: Gradients, upstream: Array) -> float:
        """Return by how much gradients are off along the way, beyond the error bar; 0 where they are right."""
        low, high, error = (float(part[0]) for part in self.along.allowed(upstream))
        value = sum(float((way * got[name]).sum()) for name, way in self.directions.items())
        bar = sum(float((np.abs(way) * tolerance[name]).sum()) for name, way in self.directions.items())
        off = value - min(max(value, low), high)
        return off if abs(off) > bar + 8 * error else 0.0

    def shared(self, name: str, got: Array, off: float) -> Array:
        """Return the nearest gradient of an argument that is not off: what is too much is taken from all alike."""
        length = sum(float((way**2).sum()) for way in self.directions.values())
        return np.asarray(got - off * self.directions[name] / length)


def find_ties(
    subject: Subject, inputs: Inputs, outputs: Sequence[Array], found: Mapping[str, object]
) -> Iterator[Tie]:
    """Yield the ties at some inputs, where the slopes along single entries have kinks."""
    kinked = {
        name: slope.kinks.reshape(inputs[name].shape)
        for name, slope in found.items() if isinstance(slope, Slopes) and slope.kinks.any()
    }  # fmt: skip
    sizes = [np.abs(inputs[name][at]) for name, at in kinked.items()]
    every, counts = np.unique(np.concatenate(sizes), return_counts=True) if sizes else (np.zeros(0),) * 2
    start = np.concatenate([output.ravel() for output in outputs])
    for number in np.argsort(-counts, kind="stable")[:MOST]:
        if not 2 <= counts[number] <= MOST_TIED:
            continue
        tied = {name: at & (np.abs(inputs[name]) == every[number]) for name, at in kinked.items()}
        ways = {
            name: np.where(at, inputs[name] if every[number] else inputs[name].dtype.type(1), 0)
            for name, at in tied.items() if at.any()
        }  # fmt: skip

        def moved(step: Array, ways: Mapping[str, Array] = ways) -> Array:
            there = {name: inputs[name] + step[0] * way for name, way in ways.items()}
            return np.concatenate([part.ravel() for part in subject.run_forward({**inputs, **there})])

        try:
            if _meet(ways, moved, start):
                along = slopes(moved, np.zeros(1, start.dtype))
                if not along.kinks.any() and np.all(np.isfinite(along.error)):
                    yield Tie(ways, along)
        except CheckError:  # forward ends beside it
            continue


def _meet(ways: Mapping[str, Array], moved: object, start: Array) -> bool:
    """Whether entries meet in one kink: what moves forward when all move is not the sum of what each one does."""
    assert callable(moved)
    for step in (STEP, -STEP):
        at = np.full(1, step, start.dtype)
        together = moved(at) - start
        single = [
            moved(at, {name: np.where(np.arange(way.size).reshape(way.shape) == place, way, 0)}) - start
            for name, way in ways.items() for place in np.flatnonzero(way)
        ]  # fmt: skip
        size = np.abs(single).sum(axis=0)
        if np.any(np.abs(together - np.sum(single, axis=0)) > 1e-3 * size):
            return True
    return False
