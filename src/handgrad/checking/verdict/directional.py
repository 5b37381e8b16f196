"""Arguments with too many entries for a derivative along each: compared along a few random directions.

A wrong entry changes the directional derivative along every one of them. Where forward can be traced, the chain rule
over the trace gives a gradient to compare with entry by entry, the analytic one; it counts only when it has the right
derivative along all the directions itself, and an entry is called wrong only when its own numerical derivative says so
too. Where forward cannot be traced, a wrong entry is found by halving a direction again and again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from handgrad.checking.adjoint import COMPARISONS, KINKED, adjoints, ties_of, vjp_text
from handgrad.checking.forward_trace import ForwardTrace, UntraceableError, is_users, trace_forward
from handgrad.checking.subject import Array, Gradients, Inputs, Subject
from handgrad.finite_differences import (
    NumericalJacobian,
    Vector,
    directional_derivatives,
    numerical_jacobian,
    rounding_noise,
    scale_of,
)
from handgrad.tolerance import ERRORS, Bounds, Rounding, close, gradient_tolerance

SECONDS = 0.7  # for the derivatives of all arguments together, of the two seconds until the verdict
TIMED = 3  # runs of forward, of which the shortest counts: other programs make it longer
LONG = 0.02  # seconds of one run: two more would cost more than they tell
EVALUATIONS = 30  # of forward, for the derivative along one coordinate or direction
DIRECTIONS = 12
LEAST = 2  # of them: where these take too long already, all arguments move together
FEW = 12  # entries whose derivatives take no longer than those along the directions
LARGEST_JACOBIAN = 5_000_000  # entries
LARGEST_DRAWN = 4_000_000  # entries of all directions
LOOKED_AT = 24  # entries unlike the analytic gradient's, the worst first, whose own derivatives are found
ENOUGH = 3  # of them that are wrong
NOTICEABLE = 1e-2  # of a typical entry: smaller entries are compared as if they had this size

LARGEST_NUMERICAL = 500  # entries of an operand whose derivative is found by differences
EMPTY = CellType()  # of a closure: of a name that has no value yet
TWO_SIDED = KINKED | COMPARISONS | {"equal", "not_equal"}
MANY_SIDED = {"max", "min", "clip", "sort", "argsort", "argmax", "argmin", "partition"} | {
    "median", "quantile", "sign", "heaviside", "norm"
}  # fmt: skip


def few_enough(subject: Subject, inputs: Inputs, arguments: Sequence[str]) -> set[str]:
    """Return the arguments whose derivatives along all coordinates take little enough time, the smallest first."""
    outputs = sum(output.size for output in subject.run_forward(inputs))
    one, chosen, spent = EVALUATIONS * seconds_of(subject, inputs), set(), 0.0
    for name in sorted(arguments, key=lambda name: inputs[name].size):
        size = inputs[name].size
        spent += size * one if size > FEW else 0.0
        if size * outputs <= LARGEST_JACOBIAN and spent <= SECONDS:
            chosen.add(name)
    return chosen


def seconds_of(subject: Subject, inputs: Inputs) -> float:
    """Return how long one run of forward takes."""
    taken = []
    for _ in range(TIMED):
        started = time.perf_counter()
        subject.run_forward(inputs)
        taken.append(time.perf_counter() - started)
        if taken[-1] > LONG:
            break
    return min(taken)


def outputs_of(subject: Subject, inputs: Inputs, name: str) -> Vector:
    """Return forward as a function of one argument, with its outputs laid end to end."""

    def function(value: Array) -> Array:
        outputs = subject.run_forward({**inputs, name: value})
        return np.concatenate([output.ravel() for output in outputs])

    return function


class AnalyticGradient:
    """The gradient of every argument at some inputs, where forward can be traced."""

    def __init__(self, subject: Subject, inputs: Inputs) -> None:
        self.subject, self.inputs = subject, inputs
        self._known: dict[bytes, Gradients] = {}

    @cached_property
    def trace(self) -> ForwardTrace | None:
        """What forward does."""
        return traced(self.subject, self.inputs)

    @cached_property
    def exists(self) -> bool:
        """Whether forward can be traced, and every large operand has a derivative with a formula."""
        trace = self.trace
        return trace is not None and all(
            np.size(trace.values[operation.inputs[k]]) <= LARGEST_NUMERICAL
            or vjp_text(operation, k, trace.values) is not None
            for operation, k in trace.edges()
        )

    def gradients(self, upstream: Sequence[Array]) -> Gradients | None:
        """Return the gradients for an upstream one, or None."""
        if not self.exists:
            return None
        wide = [np.asarray(part, np.float64) for part in upstream]
        key = b"".join(part.tobytes() for part in wide)
        if key not in self._known and (trace := self.trace):
            found = adjoints(trace, trace.values, wide)
            self._known[key] = {
                name: np.asarray(found.get(index, 0.0), np.float64) + np.zeros(self.inputs[name].shape)
                for name, index in trace.inputs.items()
            }
        return self._known[key]

    def kinks_left(self, name: str, index: tuple[int, ...]) -> int | None:
        """Return how many kinks forward leaves when one entry is perturbed, or None when that is not known."""
        trace = self.trace
        if trace is None or any(o.name in MANY_SIDED for o in trace.operations):
            return None
        point = self.inputs[name].copy()
        point[index] += 1e-7 * (np.abs(point[index]) or 1.0)
        moved = trace.replay({**self.inputs, name: point})
        return sum(
            int(np.sum(ties_of(operation, trace.values) & ~ties_of(operation, moved)))
            for operation in trace.operations
            if operation.name in TWO_SIDED
        )


def traced(subject: Subject, inputs: Mapping[str, Any]) -> ForwardTrace | None:
    """Return a trace of a subject's forward, or None when it cannot be traced."""
    on_numpy = getattr(subject.forward, "on_numpy", None)  # another library's, on NumPy's arrays
    chosen = on_numpy or subject.forward

    def forward(given: dict[str, Any]) -> Any:
        return chosen(*given.values()) if subject.positional else chosen(**given)

    try:
        trace = trace_forward(forward, inputs, _functions(chosen))
    except UntraceableError:
        return None
    if on_numpy:
        ends, outputs = [trace.values[index] for index in trace.outputs], subject.run_forward(dict(inputs))
        return trace if len(ends) == len(outputs) and all(map(close, ends, outputs)) else None
    return trace


def _functions(function: Any) -> list[FunctionType]:
    """Return the functions that a forward may call: of its module, and of what closures and objects of anyone's hold."""
    left, seen, found = [getattr(function, "__wrapped__", function)], {}, []
    while left:
        item = left.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | np.ndarray):
            continue
        seen[id(item)] = item  # alive, so that no other gets its number
        if isinstance(item, FunctionType):
            found.append(item)
            left += [cell.cell_contents for cell in item.__closure__ or () if cell != EMPTY]
            left += (
                (each for each in item.__globals__.values() if isinstance(each, FunctionType))
                if is_users(item)
                else ()
            )
        elif isinstance(item, MethodType):
            left += [item.__func__, item.__self__]
        elif isinstance(item, dict | list | tuple):
            left += item.values() if isinstance(item, dict) else item
        elif hasattr(item, "__dict__"):
            names = (each for kind in type(item).__mro__ for each in vars(kind).values())
            methods = [each for each in names if isinstance(each, FunctionType) and is_users(each)]
            left += [*methods, *vars(item).values()] if methods else []
    return found


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
    directions: Array  # (d, *point.shape)
    analytic: AnalyticGradient  # another gradient to compare with, once it is confirmed
    looked_at: dict[tuple[int, ...], NumericalJacobian] = field(default_factory=dict)
    joint: JointCheck | None = None  # where forward is slow: of this argument and all others together

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
                f"{len(self.joint.check.directions)} random directions of all of them together, for forward takes long"
            )
        if self.analytic.exists:
            way = "entry by entry against the chain rule over a trace of forward, confirmed by"
        return f"{way} the derivatives along {len(self.directions)} random directions"

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

    def derivatives(self, directions: Array) -> NumericalJacobian:
        """Differentiate the products along some directions."""

        def products(value: Array) -> Array:
            return np.asarray(self.upstreams @ self.outputs(value))

        return directional_derivatives(products, self.point, directions, np.abs(self.upstreams) @ self.noise)

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
            if wrong == ENOUGH:
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
            self.looked_at[index] = numerical_jacobian(self.outputs, self.point, [index], self.noise)
        column, upstream = self.looked_at[index], flat @ self.upstreams
        bounds.low[index], bounds.high[index], error = (float(part[0]) for part in column.allowed(upstream))
        bounds.size[index] = max(bounds.size[index], float(column.magnitude(upstream)[0]))
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
            missed = self.check._missed(whole, flat, exact, self.check.directions, self.check.along)
            self.known[key] = bool(np.all(missed <= 0))
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
    noise = rounding_noise(together, start)
    each = SECONDS / (EVALUATIONS * seconds_of(subject, inputs) * len(names))
    found = {}
    for name in names:
        outputs, point = outputs_of(subject, inputs, name), inputs[name]
        number = int(np.clip(min(each, LARGEST_DRAWN / point.size), LEAST, DIRECTIONS))
        directions = generator.normal(size=(number, *point.shape))
        found[name] = DirectionalCheck(name, outputs, noise, flat, point, directions, analytic)
    if each >= LEAST or not analytic.exists or len(names) == 1:
        return found
    typical = [np.full(inputs[name].size, scale_of(inputs[name])) for name in names]
    directions = generator.normal(size=(LEAST, start.size)) * np.concatenate(typical)
    joint = JointCheck(tuple(names), DirectionalCheck("", together, noise, flat, start, directions, analytic))
    return {name: replace(check, joint=joint) for name, check in found.items()}


def _together(subject: Subject, inputs: Inputs, names: Sequence[str]) -> tuple[Vector, Array]:
    """Return forward as a function of several arguments laid end to end, and those."""
    ends = np.cumsum([inputs[name].size for name in names])[:-1]

    def outputs(flat: Array) -> Array:
        parts = zip(names, np.split(flat, ends), strict=True)
        moved = {name: part.reshape(inputs[name].shape) for name, part in parts}
        return np.concatenate([output.ravel() for output in subject.run_forward({**inputs, **moved})])

    return outputs, np.concatenate([inputs[name].ravel() for name in names])
