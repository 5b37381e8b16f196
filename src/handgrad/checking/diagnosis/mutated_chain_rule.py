"""The chain rule with a mistake at one place of it, carried back over the trace and compared with backward's numbers.

It needs neither backward's source nor the right gradient's: a mistake is a local rule that an operation's operands get
their gradients by, and it is found where it makes the right chain rule return what backward does, at every inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.adjoint import adjoints
from handgrad.checking.adjoint.chain_rule import sides, vector_jacobian_product
from handgrad.checking.forward_trace import ForwardTrace, Operation
from handgrad.checking.subject import Array
from handgrad.checking.verdict.comparison import Evidence, GradientSample
from handgrad.tolerance import close

NEARER = 0.05  # of the error that it explains, a prediction may be off: it must explain a small error too
WORK = 12_000  # operations that are carried back through, all mutations together: about two seconds

LocalRule = Callable[[Any, dict[int, Any], Sequence[Any]], Iterable[tuple[int, Any]]]
"""From the gradient of an operation's output, the products of its operands and all values, what each value gets."""
Rules = Mapping[int, LocalRule]


class Point(NamedTuple):
    """All values of the trace at some inputs, one upstream gradient, and the right gradient of each value."""

    values: Sequence[Any]
    sample: GradientSample
    right: Mapping[int, Any]
    at_kinks: Mapping[int, Mapping[int, Any]]


class Scaled(NamedTuple):
    """A part of some gradients that backward has several times, or not at all."""

    factor: float
    names: tuple[str, ...]
    is_all: bool  # the part is all of these gradients


def explains(predicted: Array, got: Array, right: Array) -> bool:
    """Whether a prediction is what was returned, and comes much nearer to it than the right gradient does."""
    error = float(np.abs(right - got).max(initial=0))
    return close(predicted, got) and float(np.abs(predicted - got).max(initial=0)) <= NEARER * error


class MutatedChainRule:
    """Carries the upstream gradients of all comparisons back, with other rules for some operations."""

    def __init__(self, evidence: Evidence, trace: ForwardTrace) -> None:
        self.trace, self.work = trace, 0
        self.wrong = tuple(name for name in evidence.wrong if _fits(evidence.pairs(name)))
        self.points: list[Point] = []
        for comparison in evidence.comparisons if self.wrong else ():
            values = trace.replay(comparison.numerical.exact) if self.points else trace.values
            at_kinks = sides(trace, values)
            for sample in comparison.samples:
                point = Point(values, sample, adjoints(trace, values, sample.upstream), at_kinks)
                found = self.gradients(point, {})  # another branch of forward has another trace
                if all(close(found[name], sample.expected(name)) for name in self.wrong):
                    self.points.append(point)
        known = {trace.inputs[name] for name in evidence.comparisons[0].arguments}
        self._right = known - {trace.inputs[name] for name in self.wrong}
        self._behind: dict[int, frozenset[int]] = {}  # value -> inputs that it depends on
        for operation in trace.operations:
            parts = (self.inputs_of(index) for index in operation.inputs)
            self._behind[operation.output] = frozenset().union(*parts)

    def inputs_of(self, value: int) -> frozenset[int]:
        """Return the inputs that a value depends on."""
        return self._behind.get(value, frozenset((value,)))

    def may_spoil(self, value: int) -> bool:
        """Whether another gradient of a value makes one wrong that is right."""
        return bool(self.inputs_of(value) & self._right)

    @property
    def is_spent(self) -> bool:
        """Whether enough was tried."""
        return self.work > WORK

    def gradients(self, point: Point, rules: Rules) -> dict[str, Array]:
        """Return all gradients with other rules: the right ones, and what the rules change, carried back."""
        off: dict[int, Any] = {}
        for operation in reversed(self.trace.operations):
            change, rule = off.get(operation.output), rules.get(operation.number)
            if change is None and rule is None:
                continue
            self.work += 1
            right = point.right.get(operation.output)
            if rule is None or right is None:
                parts = [] if change is None else self._parts(point, operation, change)
            else:
                products = self._products(point, operation, right if change is None else right + change)
                parts = [*rule(right if change is None else right + change, products, point.values)]
                parts += [(index, -part) for index, part in self._parts(point, operation, right)]
            for index, part in parts:
                off[index] = off[index] + part if index in off else part
        return {
            name: np.asarray(point.right.get(index, 0.0) + off.get(index, 0.0), float)
            + np.zeros(np.shape(point.values[index]))
            for name, index in self.trace.inputs.items()
            if name in point.sample.bounds
        }

    def _products(self, point: Point, operation: Operation, gradient: Any) -> dict[int, Any]:
        """Return what each operand of an operation gets of a gradient of its output."""
        at_kink = point.at_kinks.get(operation.number)
        return {
            k: vector_jacobian_product(operation, k, point.values, gradient, at_kink)
            for k, index in enumerate(operation.inputs)
            if index in self.trace.active
        }

    def _parts(self, point: Point, operation: Operation, gradient: Any) -> list[tuple[int, Any]]:
        return [(operation.inputs[k], part) for k, part in self._products(point, operation, gradient).items()]

    def at_values(self, point: Point, values: Sequence[Any]) -> dict[str, Array]:
        """Return all gradients by the chain rule at other values."""
        self.work += len(self.trace.operations)
        return self.gradients(
            point._replace(values=values, right=adjoints(self.trace, values, point.sample.upstream)), {}
        )

    def explained(self, rules: Rules) -> tuple[str, ...]:
        """Return the arguments whose gradients are what backward returns, with these rules, at every point."""
        names = self.wrong
        for point in self.points:
            names = self.met(self.gradients(point, rules), point, names)
            if not names:
                break
        return names

    def met(self, found: Mapping[str, Array], point: Point, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the arguments that some gradients explain; none when they spoil a right one."""
        sample = point.sample
        for name, gradient in found.items():
            if name not in self.wrong and not close(gradient, sample.expected(name)):
                return ()
        return tuple(n for n in names if explains(found[n], sample.got[n], sample.expected(n)))

    def scaled(self, rules: Rules) -> Scaled | None:
        """Return by what the part was multiplied that some rules leave out, where that is what backward returns."""
        known = [self._scaled_at(point, rules) for point in self.points]
        first = known[0]
        if first is None or any(
            each is None or not close(each.factor, first.factor, least=1.0) for each in known
        ):
            return None
        names = tuple(n for n in first.names if all(each and n in each.names for each in known))
        is_all = all(each is not None and each.is_all for each in known)
        return first._replace(names=names, is_all=is_all) if names else None

    def _scaled_at(self, point: Point, rules: Rules) -> Scaled | None:
        without, sample = self.gradients(point, rules), point.sample
        factors: dict[str, float] = {}
        for name in self.wrong:
            right, got = sample.expected(name), sample.got[name]
            part = right - without[name]
            if size := float((part**2).sum()):
                factor = float(((got - without[name]) * part).sum()) / size
                if explains(without[name] + factor * part, got, right):
                    factors[name] = factor
        spoilt = (n for n in without if n not in self.wrong and not close(without[n], sample.expected(n)))
        if not factors or any(spoilt):
            return None
        shared = next(iter(factors.values()))
        names = tuple(name for name, each in factors.items() if close(each, shared, least=1.0))
        return Scaled(shared, names, not any(np.any(without[name]) for name in names))


def named_value(trace: ForwardTrace, index: int) -> str:
    """Return what a value is called in a sentence."""
    return f"`{trace.names[index]}`" if index in trace.names else "an intermediate"


def quoted_line(trace: ForwardTrace, operation: Operation) -> str:
    """Return the line of forward that an operation belongs to, for a sentence."""
    source = trace.source(operation)
    if not operation.place[1]:
        return "the loss"  # which has no line: it was assumed
    return f"`{source}` (line {operation.place[1]})" if source else f"line {operation.place[1]}"


def _fits(pairs: Sequence[tuple[Array, Array]]) -> bool:
    """Whether a gradient has its argument's shape, and finite numbers."""
    return all(got.shape == right.shape and bool(np.all(np.isfinite(got))) for got, right in pairs)
