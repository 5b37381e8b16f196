"""Arguments with too many entries for a slope along each: judged along a few random directions.

A wrong entry changes the directional derivative along every one of them. Where forward can be recorded, the chain rule
over the recording gives a gradient to compare with entry by entry; it counts only when it has the right derivative
along all the directions itself, and an entry is called wrong only when its own slope, by differences, says so too. Where
forward cannot be recorded, a wrong entry is found by halving a direction again and again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from handgrad.checking.numerical.finite_differences import (
    Array,
    NumericalJacobian,
    Vector,
    directional_derivatives,
    numerical_jacobian,
)
from handgrad.checking.numerical.reference import Reference
from handgrad.checking.subject import Inputs, Subject

WORK = 400_000_000  # numbers, for the slopes along coordinates, of all arguments together: about a second
STEP = 16  # numbers are worked on while Python makes a step
WIDE = 8  # times as long, for a number beyond float64
EVALUATIONS = 30  # of forward, for the slope along one coordinate or direction
DIRECTIONS = 12
FEW = 12  # entries whose slopes take no longer than those along the directions
LARGEST_JACOBIAN = 5_000_000  # entries
LARGEST_DRAWN = 20_000_000  # entries of all directions
LOOKED_AT = 24  # entries that differ from the reference, the worst first, whose own slopes are found
ENOUGH = 3  # of them that are wrong


@dataclass(frozen=True)
class Bounds:
    """What a gradient may be, entry by entry, in its argument's shape; as in `GradientSample`."""

    low: Array
    high: Array
    tolerance: Array
    magnitude: Array


@dataclass(frozen=True)
class Rounding:
    """How exact a gradient can be.

    Attributes
    ----------
    noise
        How much backward's gradient moves by rounding.
    eps
        Of its type.
    digits
        The relative error that is always allowed.
    least
        The size of an entry that is zero to forward's rounding.
    """

    noise: Array
    eps: float
    digits: float
    least: float

    def bounds(self, gradient: Array, floor: float = 0.0) -> Bounds:
        """Return the bounds around a gradient."""
        size = np.asarray(np.maximum(np.abs(gradient) + floor, self.least))
        excused = np.minimum(16 * self.noise, 1e-6 * size) if self.noise.shape == size.shape else 0.0
        tolerance = excused + self.digits * size + 64 * self.eps * size.max(initial=0)
        return Bounds(np.array(gradient), np.array(gradient), np.asarray(tolerance), size)


def few_enough(subject: Subject, inputs: Inputs, arguments: Sequence[str]) -> set[str]:
    """Return the arguments whose slopes along all coordinates are little enough work, the smallest first."""
    outputs = sum(output.size for output in subject.run_forward(inputs))
    work, chosen, spent = work_of(subject, inputs), set(), 0
    for name in sorted(arguments, key=lambda name: inputs[name].size):
        size = inputs[name].size
        if size > FEW:
            spent += size * EVALUATIONS * work
        if size * outputs <= LARGEST_JACOBIAN and spent <= WORK:
            chosen.add(name)
    return chosen


def work_of(subject: Subject, inputs: Inputs) -> int:
    """Return how much work one run of forward is: the numbers it takes and returns, and the steps Python makes.

    It is counted, not timed: what is done, and so what is found, is the same on a machine that is busy.
    """
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        steps += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        subject.run_forward(inputs)  # since Python 3.12, a function's steps are told from its second run on
        steps = 0
        outputs = subject.run_forward(inputs)
    finally:
        sys.settrace(before)
    arrays = [*inputs.values(), *outputs]
    each = WIDE if any(array.dtype == np.longdouble for array in arrays) else 1
    return STEP * steps + each * sum(array.size for array in arrays)


def outputs_of(subject: Subject, inputs: Inputs, name: str) -> Vector:
    """Return forward as a function of one argument, with its outputs laid end to end."""

    def function(value: Array) -> Array:
        outputs = subject.run_forward({**inputs, name: value})
        return np.concatenate([output.ravel() for output in outputs])

    return function


@dataclass(frozen=True)
class Projections:
    """Derivatives of m outputs along d random directions of a large argument.

    Attributes
    ----------
    name
        Of the argument.
    function, point
        The outputs as a function of the argument, and where they are looked at.
    directions
        (d, …), in the argument's shape.
    along
        The slopes, (m, d).
    reference
        Another gradient to compare with, once it is confirmed.
    """

    name: str
    function: Vector
    point: Array
    directions: Array
    along: NumericalJacobian
    reference: Reference
    looked_at: dict[tuple[int, ...], NumericalJacobian] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """What is done with the argument, in words."""
        way = "as a whole, so that an error of a part in a million of it is not seen, by"
        if self.reference.recorded:
            way = "entry by entry against the chain rule over the recorded forward, which fits"
        return f"{way} the slopes along {len(self.directions)} random directions"

    def bounds(self, upstream: Sequence[Array], got: Array, rounding: Rounding) -> Bounds:
        """Return what the gradient may be, entry by entry, when ``got`` is what was returned."""
        flat = np.concatenate([part.ravel() for part in upstream])
        for candidate in self._candidates(upstream, flat, got):
            if np.all(self._missed(candidate, flat, rounding, self.directions, self.along) <= 0):
                return self._beside(candidate, got, flat, rounding)
        return self._alone(got, flat, rounding)

    def _candidates(self, upstream: Sequence[Array], flat: Array, got: Array) -> Iterator[Array]:
        """Yield gradients that may be right: by the chain rule, and what was returned times a constant."""
        gradients = self.reference.gradients(upstream)
        if gradients is not None:
            yield gradients[self.name]
        if got.shape == self.point.shape and np.all(np.isfinite(got)) and np.any(got):
            right = np.mean(self.along.allowed(flat)[:2], axis=0)
            own = (self.directions * got).sum(axis=tuple(range(1, self.directions.ndim)))
            yield float((right * own).sum() / (own * own).sum()) * got

    def _missed(
        self, gradient: Array, flat: Array, rounding: Rounding, directions: Array, along: NumericalJacobian
    ) -> Array:
        """Return how far a gradient is off along each direction, beyond the error bar."""
        low, high, error = along.allowed(flat)
        axes = tuple(range(1, directions.ndim))
        parts = directions * gradient
        bar = 8 * error + rounding.digits * np.maximum(along.magnitude(flat), rounding.least)
        bar = bar + 64 * rounding.eps * np.sqrt((parts**2).sum(axis=axes))
        if rounding.noise.shape == gradient.shape:
            bar = bar + 16 * np.sqrt(((directions * rounding.noise) ** 2).sum(axis=axes))
        value = parts.sum(axis=axes)
        return np.asarray(np.maximum(low - value, value - high) - bar)

    def _beside(self, reference: Array, got: Array, flat: Array, rounding: Rounding) -> Bounds:
        """Compare with the reference; where it differs, the entry's own slope decides."""
        bounds = rounding.bounds(reference, floor=1e-2 * float(np.sqrt(np.mean(reference**2))))
        if got.shape != reference.shape:
            return bounds
        off = np.where(np.isfinite(got), np.abs(got - reference) / (bounds.tolerance + 1e-300), 0.0)
        bad = np.flatnonzero(off > 1)
        wrong = 0
        for position in bad[np.argsort(-off.flat[bad])][:LOOKED_AT]:
            wrong += self._look_at(np.unravel_index(int(position), got.shape), got, flat, bounds)
            if wrong == ENOUGH:
                break
        if not wrong and len(bad):  # at a kink the two gradients may both be right
            bounds.low.flat[bad] = np.minimum(bounds.low.flat[bad], got.flat[bad])
            bounds.high.flat[bad] = np.maximum(bounds.high.flat[bad], got.flat[bad])
        return bounds

    def _alone(self, got: Array, flat: Array, rounding: Rounding) -> Bounds:
        """Find a wrong entry by the directions alone; all others are taken to be right."""
        fits = got.shape == self.point.shape
        own = np.where(np.isfinite(got), got, 0.0) if fits else np.zeros(self.point.shape)
        bounds = rounding.bounds(own)
        if not fits or not np.all(np.isfinite(got)):
            return bounds
        missed = self._missed(got, flat, rounding, self.directions, self.along)
        known = [self._look_at(index, got, flat, bounds) for index in self.looked_at]
        if np.all(missed <= 0) or any(known):
            return bounds
        index = self._find(got, flat, rounding, self.directions[int(missed.argmax())])
        if index is not None:
            self._look_at(index, got, flat, bounds)
        else:  # too little of it in any part to be seen there: it cannot be told
            bounds.tolerance[...] = missed.max()
        return bounds

    def _find(self, got: Array, flat: Array, rounding: Rounding, direction: Array) -> tuple[int, ...] | None:
        """Return the entry that a direction is most off by: halve it, and follow the worse half."""
        left = np.arange(got.size)
        while left.size > 1:
            halves = np.array_split(left, 2)
            directions = np.zeros((2, got.size))
            for row, half in zip(directions, halves, strict=True):
                row[half] = direction.flat[half]
            directions = directions.reshape(2, *got.shape)
            along = directional_derivatives(self.function, self.point, directions)
            missed = self._missed(got, flat, rounding, directions, along)
            if np.all(missed <= 0):
                return None
            left = halves[int(missed.argmax())]
        return tuple(map(int, np.unravel_index(left[0], got.shape)))

    def _look_at(self, index: Any, got: Array, flat: Array, bounds: Bounds) -> bool:
        """Find an entry's own slope and put it into the bounds; return whether the gradient there is wrong."""
        index = tuple(map(int, index))
        if index not in self.looked_at:
            self.looked_at[index] = numerical_jacobian(self.function, self.point, [index])
        column = self.looked_at[index]
        low, high, error = (float(part[0]) for part in column.allowed(flat))
        bounds.low[index], bounds.high[index] = low, high
        bounds.magnitude[index] = max(bounds.magnitude[index], float(column.magnitude(flat)[0]))
        bounds.tolerance[index] += 8 * error
        return not low - bounds.tolerance[index] <= got[index] <= high + bounds.tolerance[index]


def project(
    function: Vector, point: Array, reference: Reference, name: str, generator: np.random.Generator
) -> Projections:
    """Find the slopes along random directions; fewer of them where one is much work or memory."""
    work = work_of(reference.subject, reference.inputs)
    fewer = min(WORK / (EVALUATIONS * work), LARGEST_DRAWN / point.size)
    directions = generator.normal(size=(int(np.clip(fewer, 2, DIRECTIONS)), *point.shape))
    return Projections(
        name, function, point, directions, directional_derivatives(function, point, directions), reference
    )
