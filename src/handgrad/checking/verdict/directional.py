"""Arguments with too many entries for a derivative along each: compared along a few random directions.

A wrong entry changes the directional derivative along every one of them. Where forward can be traced, the chain rule
over the trace gives a gradient to compare with entry by entry, the analytic one; it counts only when it has the right
derivative along all the directions itself, and an entry is called wrong only when its own numerical derivative says so
too. Where forward cannot be traced, a wrong entry is found by halving a direction again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from handgrad.checking.subject import Array, Gradients, Inputs, Subject
from handgrad.checking.verdict.analytic import AnalyticGradient, is_slow, seconds_of
from handgrad.finite_differences import (
    NumericalJacobian,
    Vector,
    directional_derivatives,
    numerical_jacobian,
    rounding_noise,
    scale_of,
)
from handgrad.tolerance import ERRORS, Bounds, Rounding, gradient_tolerance

SECONDS = 0.7  # for the derivatives of all arguments together, of the two seconds until the verdict
EVALUATIONS = 30  # of forward, for the derivative along one coordinate or direction
DIRECTIONS = 12
LEAST = 2  # of them: where these take too long already, all arguments move together
DRAWS, FEW_DRAWS = 6, 2  # inputs a rounding error away, to see forward's own; where it is slow
INDEPENDENT = 4.0  # times as large as roundings that are independent add up to
CONFIRMED = 1e-4  # of the derivative: one that is known worse confirms no gradient
FEW = 12  # entries whose derivatives take no longer than those along the directions
LARGEST_JACOBIAN = 5_000_000  # entries
LARGEST_DRAWN = 4_000_000  # entries of all directions
LOOKED_AT = 24  # entries unlike the analytic gradient's, the worst first, whose own derivatives are found
ENOUGH = 3  # of them that are wrong
NOTICEABLE = 1e-2  # of a typical entry: smaller entries are compared as if they had this size


def few_enough(subject: Subject, inputs: Inputs, arguments: Sequence[str], outputs: int) -> set[str]:
    """Return the arguments whose derivatives along all coordinates take little enough time, the smallest first."""
    one, chosen, spent = EVALUATIONS * seconds_of(subject, inputs), set(), 0.0
    for name in sorted(arguments, key=lambda name: inputs[name].size):
        size = inputs[name].size
        spent += size * one if size > FEW or is_slow(subject, inputs) else 0.0
        if size * outputs <= LARGEST_JACOBIAN and spent <= SECONDS:
            chosen.add(name)
    return chosen


def outputs_of(subject: Subject, inputs: Inputs, name: str) -> Vector:
    """Return forward as a function of one argument, with its outputs laid end to end."""

    def function(value: Array) -> Array:
        outputs = subject.run_forward({**inputs, name: value})
        return np.concatenate([output.ravel() for output in outputs])

    return function


@dataclass(frozen=True)
class DirectionalCheck:
    """Derivatives along d random directions of a large argument, to check its gradient by.

    Only the products of the outputs with the upstream gradients are differentiated: the outputs may be a million too.
    """

    name: str  # of the argument
    outputs: Vector  # as a function of the argument
    noise: Array  # their rounding
    upstreams: Array  # (products, outputs)
    point: Array
    draw: Callable[[], Array]  # the directions, (d, *point.shape)
    analytic: AnalyticGradient  # another gradient to compare with, once it is confirmed
    looked_at: dict[tuple[int, ...], NumericalJacobian] = field(default_factory=dict)
    joint: JointCheck | None = None  # where forward is slow: of this argument and all others together
    few: bool = False  # whether forward is run as few times as will do

    @cached_property
    def directions(self) -> Array:
        """The directions, (d, \\*point.shape)."""
        return self.draw()

    @cached_property
    def along(self) -> NumericalJacobian:
        """The derivatives along the directions, (products, d)."""
        return self.derivatives(self.directions)

    @property
    def description(self) -> str:
        """How the argument's gradient is checked, in words."""
        way = "as a whole, so that an error of a part in a million of it is not seen, by"
        if self.joint is not None and self.joint.confirmed:
            return (
                "entry by entry against the chain rule over a trace of forward, confirmed by the derivatives along "
                f"{_ways(self.joint.check.directions)} of all of them together, for forward takes long"
            )
        if self.analytic.exists:
            way = "entry by entry against the chain rule over a trace of forward, confirmed by"
        return f"{way} the derivatives along {_ways(self.directions)}"

    def bounds(self, number: int, upstream: Sequence[Array], got: Array, rounding: Rounding) -> Bounds:
        """Return what the gradient for an upstream one may be, entry by entry, when ``got`` is what was returned."""
        flat = np.eye(len(self.upstreams))[number]
        gradients = self.analytic.gradients(upstream)
        if (
            self.joint is not None
            and gradients is not None
            and self.joint.confirms(gradients, flat, rounding)
        ):
            return self._around(gradients[self.name], got, flat, rounding)
        for candidate in self._candidates(upstream, flat, got):
            if np.all(self._missed(candidate, flat, rounding, self.directions, self.along) <= 0):
                return self._around(candidate, got, flat, rounding)
        return self._by_directions(got, flat, rounding)

    def products(self, value: Array) -> Array:
        """Return the products of the outputs with the upstream gradients."""
        return np.asarray(self.upstreams @ self.outputs(value))

    @cached_property
    def noise_of_products(self) -> Array:
        """The rounding of the products: upstream gradients have any sign, so that a million roundings do not add up."""
        added = np.abs(self.upstreams) @ self.noise
        return np.asarray(np.minimum(added, INDEPENDENT * np.sqrt(self.upstreams**2 @ self.noise**2)))

    def derivatives(self, directions: Array) -> NumericalJacobian:
        """Differentiate the products along some directions."""
        return directional_derivatives(
            self.products, self.point, directions, self.noise_of_products, few=self.few
        )

    def _candidates(self, upstream: Sequence[Array], flat: Array, got: Array) -> Iterator[Array]:
        """Yield gradients that may be right: by the chain rule, and what was returned times a constant."""
        if (gradients := self.analytic.gradients(upstream)) is not None:
            yield gradients[self.name]
        if got.shape == self.point.shape and np.all(np.isfinite(got)) and np.any(got):
            right = np.mean(self.along.allowed(flat)[:2], axis=0)
            own = (self.directions * got).sum(axis=tuple(range(1, self.directions.ndim)))
            yield float((right * own).sum() / (own * own).sum()) * got

    def _missed(
        self, gradient: Array, flat: Array, rounding: Rounding, directions: Array, along: NumericalJacobian
    ) -> Array:
        """Return how far a gradient is off along each direction, beyond the tolerance."""
        low, high, error = along.allowed(flat)
        ways = directions.reshape(len(directions), -1)
        value, squared = ways @ gradient.ravel(), ways**2
        summed = np.sqrt(squared @ gradient.ravel() ** 2)
        perturbed = np.zeros(len(ways))
        if rounding.perturbed.shape == gradient.shape:
            perturbed = np.sqrt(squared @ rounding.perturbed.ravel() ** 2)
        size = np.maximum(summed, rounding.least)
        tolerance = gradient_tolerance(error, size, rounding.eps, summed, perturbed)
        return np.asarray(np.maximum(low - value, value - high) - tolerance)

    def _around(self, reference: Array, got: Array, flat: Array, rounding: Rounding) -> Bounds:
        """Compare with a confirmed gradient; where it differs, the entry's own derivative decides."""
        floor = NOTICEABLE * float(np.sqrt(np.mean(reference**2)))
        bounds = rounding.bounds(reference, reference, 0.0, np.abs(reference) + floor)
        if got.shape != reference.shape:
            return bounds
        off = np.where(np.isfinite(got), np.abs(got - reference) / (bounds.tolerance + 1e-300), 0.0)
        bad = np.flatnonzero(off > 1)
        wrong = 0
        for position in bad[np.argsort(-off.flat[bad])][:LOOKED_AT]:
            wrong += self._look_at(np.unravel_index(int(position), got.shape), got, flat, bounds)
            if wrong == (1 if self.few else ENOUGH):
                break
        if not wrong and len(bad):  # at a kink the two gradients may both be right
            bounds.low.flat[bad] = np.minimum(bounds.low.flat[bad], got.flat[bad])
            bounds.high.flat[bad] = np.maximum(bounds.high.flat[bad], got.flat[bad])
        return bounds

    def _by_directions(self, got: Array, flat: Array, rounding: Rounding) -> Bounds:
        """Find a wrong entry by the directions alone; all others are taken to be right."""
        fits = got.shape == self.point.shape
        own = np.where(np.isfinite(got), got, 0.0) if fits else np.zeros(self.point.shape)
        bounds = rounding.bounds(own, own, 0.0, np.abs(own))
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
            along = self.derivatives(directions)
            missed = self._missed(got, flat, rounding, directions, along)
            if np.all(missed <= 0):
                return None
            left = halves[int(missed.argmax())]
        return tuple(map(int, np.unravel_index(left[0], got.shape)))

    def _look_at(self, index: Any, got: Array, flat: Array, bounds: Bounds) -> bool:
        """Put an entry's own derivative into the bounds; return whether the gradient there is wrong."""
        index = tuple(map(int, index))
        if index not in self.looked_at:
            self.looked_at[index] = numerical_jacobian(
                self.products, self.point, [index], self.noise_of_products
            )
        column = self.looked_at[index]
        bounds.low[index], bounds.high[index], error = (float(part[0]) for part in column.allowed(flat))
        bounds.size[index] = max(bounds.size[index], float(column.magnitude(flat)[0]))
        bounds.tolerance[index] += ERRORS * error
        return bool(bounds.wrong(got)[index])


@dataclass(frozen=True)
class JointCheck:
    """Derivatives as all large arguments move together: they confirm the analytic gradients of all in the runs of one."""

    names: tuple[str, ...]
    check: DirectionalCheck  # of the arguments laid end to end
    known: dict[bytes, bool] = field(default_factory=dict)

    @property
    def confirmed(self) -> bool:
        """Whether the analytic gradient was right along the directions for every upstream gradient."""
        return bool(self.known) and all(self.known.values())

    def confirms(self, gradients: Gradients, flat: Array, rounding: Rounding) -> bool:
        """Whether the analytic gradients have the right derivatives along the directions."""
        if (key := flat.tobytes()) not in self.known:
            whole = np.concatenate([gradients[name].ravel() for name in self.names])
            exact = Rounding(rounding.eps, 0.0, np.zeros(0))
            check, error = self.check, self.check.along.allowed(flat)[2]
            missed = check._missed(whole, flat, exact, check.directions, check.along)
            summed = np.sqrt(check.directions**2 @ whole**2)
            self.known[key] = bool(np.all((missed <= 0) & (ERRORS * error <= CONFIRMED * summed)))
        return self.known[key]


def directional_checks(
    analytic: AnalyticGradient,
    names: Sequence[str],
    upstreams: Sequence[Sequence[Array]],
    generator: np.random.Generator,
) -> dict[str, DirectionalCheck]:
    """Differentiate along random directions of some arguments; fewer of them where one takes long or much memory."""
    subject, inputs = analytic.subject, analytic.inputs
    flat = np.stack([np.concatenate([part.ravel() for part in upstream]) for upstream in upstreams])
    together, start = _together(subject, inputs, names)
    few = is_slow(subject, inputs)
    noise = rounding_noise(together, start, FEW_DRAWS if few else DRAWS)
    each = SECONDS / (EVALUATIONS * seconds_of(subject, inputs) * len(names))
    found = {}
    for name in names:
        outputs, point = outputs_of(subject, inputs, name), inputs[name]
        number = int(np.clip(min(each, LARGEST_DRAWN / point.size), LEAST, DIRECTIONS))
        draw = partial(_directions, int(generator.integers(2**32)), (number, *point.shape))
        found[name] = DirectionalCheck(name, outputs, noise, flat, point, draw, analytic, few=few)
    if each >= LEAST or not analytic.exists:
        return found
    typical = np.concatenate([np.full(inputs[name].size, scale_of(inputs[name])) for name in names])
    draw = partial(_directions, int(generator.integers(2**32)), (1 if few else LEAST, start.size), typical)
    joint = JointCheck(
        tuple(names), DirectionalCheck("", together, noise, flat, start, draw, analytic, few=True)
    )
    return {name: replace(check, joint=joint) for name, check in found.items()}


def _directions(seed: int, shape: tuple[int, ...], scale: Array | float = 1.0) -> Array:
    return np.random.default_rng(seed).normal(size=shape) * scale


def _ways(directions: Array) -> str:
    """Return how many directions there are, in words."""
    return f"{len(directions)} random direction{'s' * (len(directions) > 1)}"


def _together(subject: Subject, inputs: Inputs, names: Sequence[str]) -> tuple[Vector, Array]:
    """Return forward as a function of several arguments laid end to end, and those."""
    ends = np.cumsum([inputs[name].size for name in names])[:-1]

    def outputs(flat: Array) -> Array:
        parts = zip(names, np.split(flat, ends), strict=True)
        moved = {name: part.reshape(inputs[name].shape) for name, part in parts}
        return np.concatenate([output.ravel() for output in subject.run_forward({**inputs, **moved})])

    return outputs, np.concatenate([inputs[name].ravel() for name in names])
