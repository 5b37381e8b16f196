"""Whether each gradient is right: what backward returns, compared with the numerical gradient of forward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import Source, perturb_off_kinks
from handgrad.checking.subject import Array, CheckError, Gradients, Inputs, Subject, widened
from handgrad.checking.verdict.analytic import AnalyticGradient, is_slow
from handgrad.checking.verdict.directional import DirectionalCheck, directional_checks, few_enough, outputs_of
from handgrad.finite_differences import NumericalJacobian, numerical_jacobian
from handgrad.tolerance import EPS, TELLING, Bounds, Rounding, close, rounding_error

UNCONFIRMED = "backward is what the chain rule over a trace of forward gives, and the slopes, not to be trusted, are neither"
UPSTREAMS = 3
LARGEST_WIDE = 20_000  # entries of all inputs: products of more take long beyond float64
LOOKED_AT = 8  # wrong entries, the worst first, whose kinks are counted
PERTURBATIONS = 4  # evaluations of backward, each input a rounding error away, that show its own rounding
NOTHING = 1e-12  # of the largest entry: a smaller one is no measure of its own error
ZERO = 1e-9  # of a gradient that would move the outputs by themselves: below, forward's rounding hides it


@dataclass(frozen=True)
class NumericalGradient:
    """The derivatives of forward at some inputs, and the upstream gradients that backward is compared at."""

    inputs: Inputs
    analytic: AnalyticGradient  # at the same inputs
    outputs: list[Array]
    upstreams: tuple[list[Array], ...]  # for each sample, one gradient for each output
    jacobians: dict[str, NumericalJacobian | DirectionalCheck]  # of all outputs laid end to end, by argument

    @property
    def exact(self) -> Inputs:
        """The inputs with all floating point in float64."""
        return self.analytic.inputs


class Worst(NamedTuple):
    """The worst entry of a gradient; its error and the tolerance are relative to what adds up to it."""

    entry: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    relative_error: float = 0.0
    error_bound: float = 0.0


@dataclass(frozen=True)
class GradientSample:
    """One upstream gradient at some inputs, what backward returned for it, and what is right."""

    inputs: Inputs  # with all floating point in float64
    upstream: list[Array]  # one for each output
    got: Gradients
    bounds: dict[str, Bounds]
    rounding: dict[str, Rounding]

    def wrong(self, argument: str) -> Array:
        """Return which entries of an argument's gradient are wrong, in its shape."""
        return self.bounds[argument].wrong(self.got[argument])

    def is_wrong(self, argument: str) -> bool:
        """Whether an argument's gradient is wrong: an entry of it, or its shape."""
        bounds, got = self.bounds[argument], self.got[argument]
        return got.shape != bounds.low.shape or bool(bounds.wrong(got).any())

    def expected(self, argument: str) -> Array:
        """Return the right gradient: of what is allowed, the nearest to what backward returned."""
        return self.bounds[argument].nearest(self.got[argument])

    def worst(self, argument: str) -> Worst:
        """Return the entry of a gradient that is farthest off."""
        bounds, got = self.bounds[argument], self.got[argument]
        if got.shape != bounds.low.shape or got.size == 0:
            return Worst()
        size = np.maximum(bounds.size, bounds.size.max() * NOTHING + np.finfo(float).tiny)
        relative = np.asarray(bounds.excess(got) / size, np.float64)
        bad = np.where(np.isnan(relative), np.inf, relative)
        index = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), got.shape))
        expected, tolerance = self.expected(argument)[index], bounds.tolerance[index] / size[index]
        return Worst(index, float(got[index]), float(expected), float(bad[index]), float(tolerance))


@dataclass(frozen=True)
class Comparison:
    """Backward's gradients compared with the numerical ones, at some inputs."""

    numerical: NumericalGradient
    samples: tuple[GradientSample, ...]  # one for each upstream gradient
    mistrusted: Mapping[str, bool] = field(default_factory=dict)
    """The arguments whose slopes contradict the chain rule, which backward agrees with; true where closer slopes do too."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that backward differentiates."""
        return tuple(self.numerical.jacobians)

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """The arguments whose gradient is not right."""
        return tuple(name for name in self.arguments if any(each.is_wrong(name) for each in self.samples))

    @cached_property
    def doubtful(self) -> dict[str, str]:
        """The arguments whose numerical gradient is known too badly to tell, with the reason."""
        doubtful = {name: UNCONFIRMED for name, confirmed in self.mistrusted.items() if not confirmed}
        for name in self.arguments:
            for bounds in (sample.bounds[name] for sample in self.samples if name not in self.wrong):
                size, tolerance = bounds.size.max(initial=0), bounds.tolerance.max(initial=0)
                if size > 0 and tolerance > TELLING * size and name not in doubtful:
                    known = f"its numerical gradient is known to {float(tolerance / size):.0e} only"
                    doubtful[name] = f"{known}: forward is too rough there"
        return doubtful

    def worst(self, argument: str) -> Worst:
        """Return the entry of a gradient that is farthest off for any upstream gradient."""
        return max((each.worst(argument) for each in self.samples), key=lambda worst: worst.relative_error)


@dataclass(frozen=True)
class Evidence:
    """What repair and diagnosis work with: backward's gradients beside the right ones, and a trace of forward."""

    subject: Subject
    comparisons: tuple[Comparison, ...]  # at the user's inputs first, then at fresh ones
    wrong: tuple[str, ...]
    source: Source = field(default_factory=dict)  # of other inputs

    @property
    def trace(self) -> ForwardTrace | None:
        """Forward as elementary operations, at the user's inputs; None where it cannot be traced."""
        return self.comparisons[0].numerical.analytic.trace

    def samples(self) -> Iterator[GradientSample]:
        """Yield every upstream gradient at every inputs."""
        for comparison in self.comparisons:
            yield from comparison.samples

    def pairs(self, argument: str) -> list[tuple[Array, Array]]:
        """Return (got, right) of an argument for every sample."""
        return [(sample.got[argument], sample.expected(argument)) for sample in self.samples()]


def _is_of_exp(subject: Subject, inputs: Inputs, where: str) -> bool:
    """Return whether forward is not finite because exp overflows: it is infinite itself, or divided by its own sum."""
    if not where.startswith(("overflow encountered in exp ", "invalid value encountered in divide ")):
        return False
    return subject.raised_by_forward(inputs, np.errstate(over="raise")).startswith(
        "overflow encountered in exp "
    )


def numerical_gradient(
    subject: Subject, inputs: Inputs, arguments: tuple[str, ...], seed: int
) -> NumericalGradient:
    """Differentiate forward numerically at some inputs, and draw upstream gradients to compare backward at.

    Where an argument has too many entries to perturb each of them, the inputs are moved off kinks first.
    """
    wide = widened(inputs, precision(subject, inputs))
    outputs = subject.run_forward(wide)
    few = few_enough(subject, wide, arguments, sum(output.size for output in outputs))
    if len(few) < len(arguments):
        inputs = perturb_off_kinks(subject, inputs, arguments, np.random.default_rng(seed))
        wide = widened(inputs, np.float64)
        outputs = subject.run_forward(wide)
    if not all(np.all(np.isfinite(output)) for output in outputs):
        where = subject.first_not_finite(wide)
        fix = "give inputs at which it is"
        if "encountered in log" in where:
            fix += ", or compute the loss from the logits: np.logaddexp(0, z) - t * z is -log of a sigmoid, and finite"
        elif _is_of_exp(subject, wide, where):
            fix += ", or subtract the maximum before exp, which overflows: np.exp(z - z.max(axis=-1, keepdims=True))"
        raise CheckError("forward is not finite at these inputs", given=where, fix=fix)
    generator = np.random.default_rng(seed)
    number = 1 if is_slow(subject, wide) else UPSTREAMS
    upstreams = tuple(_upstream(outputs, generator, subject.scale) for _ in range(number))
    analytic = AnalyticGradient(subject, widened(inputs, np.float64))
    many = [name for name in arguments if name not in few]
    checks = directional_checks(analytic, many, upstreams, generator) if many else {}
    jacobians: dict[str, NumericalJacobian | DirectionalCheck] = {
        name: checks[name]
        if name in checks
        else numerical_jacobian(outputs_of(subject, wide, name), wide[name])
        for name in arguments
    }
    return NumericalGradient(inputs, analytic, outputs, upstreams, jacobians)


def compare(subject: Subject, numerical: NumericalGradient) -> Comparison:
    """Compare a backward's gradients, in float64, with the numerical ones."""
    numbers = range(len(numerical.upstreams))
    return Comparison(numerical, tuple(_sample(subject, number, numerical) for number in numbers))


def _sample(subject: Subject, number: int, numerical: NumericalGradient) -> GradientSample:
    """Run backward, and find what its gradients must be."""
    upstream = numerical.upstreams[number]
    gradients = subject.run_backward(upstream, numerical.exact)
    if is_slow(subject, numerical.exact):
        sample = _judged(number, numerical, gradients, {})
        if not any(map(sample.is_wrong, numerical.jacobians)):
            return sample
    return _judged(number, numerical, gradients, _perturbed(subject, upstream, numerical.exact, gradients))


def _judged(
    number: int, numerical: NumericalGradient, gradients: Gradients, perturbed: Gradients
) -> GradientSample:
    """Find what backward's gradients must be, and how far rounding may have moved them."""
    upstream = numerical.upstreams[number]
    flat = np.concatenate([part.ravel() for part in upstream])
    eps = rounding_error(*numerical.inputs.values(), *numerical.outputs)  # that of the gradient is backward's
    bounds: dict[str, Bounds] = {}
    roundings: dict[str, Rounding] = {}
    for name, jacobian in numerical.jacobians.items():
        rounding = Rounding(eps, _least(numerical, name, flat), perturbed.get(name, np.zeros(0)))
        roundings[name] = rounding
        if isinstance(jacobian, DirectionalCheck):
            bounds[name] = jacobian.bounds(number, upstream, gradients[name], rounding)
        else:
            shape = numerical.inputs[name].shape
            parts = (*jacobian.allowed(flat), jacobian.magnitude(flat))
            bounds[name] = rounding.bounds(*(part.reshape(shape) for part in parts))
    return GradientSample(numerical.exact, upstream, gradients, bounds, roundings)


def rejudge_off_kinks(subject: Subject, comparison: Comparison, seed: int) -> Comparison:
    """Return the comparison, or one at inputs perturbed a little where only kinks make a gradient look wrong.

    Where several kinks meet in one entry, at zeros and ties, what is right cannot be had from finite differences
    there. Where it is one alone, the derivatives of its two sides say all.
    """
    inputs, wrong = comparison.numerical.inputs, comparison.wrong
    if not wrong:
        return comparison
    found = [(sample.got[name], inputs[name].shape) for sample in comparison.samples for name in wrong]
    finite = all(got.shape == shape and np.all(np.isfinite(got)) for got, shape in found)
    special = any(map(_is_special, inputs.values()))
    if not finite or not special or _at_one_kink(comparison):
        return comparison
    moved = perturb_off_kinks(subject, inputs, comparison.arguments, np.random.default_rng(seed))
    other = compare(subject, numerical_gradient(subject, moved, comparison.arguments, seed))
    return other if set(wrong) - set(other.wrong) else comparison


def _at_one_kink(comparison: Comparison) -> bool:
    """Whether one of the worst entries is at a single kink, so that what its two sides say of it is final."""
    analytic, sample = comparison.numerical.analytic, comparison.samples[0]
    for name in comparison.wrong:
        if isinstance(comparison.numerical.jacobians[name], NumericalJacobian):
            excess = np.where(sample.wrong(name), sample.bounds[name].excess(sample.got[name]), 0)
            for position in np.argsort(-excess, axis=None)[:LOOKED_AT]:
                index = tuple(map(int, np.unravel_index(int(position), excess.shape)))
                if excess[index] > 0 and analytic.kinks_left(name, index) == 1:
                    return True
    return False


def _is_special(value: Array) -> bool:
    """Whether an array holds round numbers, or one number twice, as at kinks and ties."""
    if value.dtype.kind != "f" or value.size == 0:
        return False
    return bool(np.any(value * 64 == np.round(value * 64)) or np.unique(np.abs(value)).size < value.size)


def precision(subject: Subject, inputs: Inputs) -> type[np.floating[Any]]:
    """Return the widest type in which forward runs and gives the same: its derivatives are the sharper for it."""
    if sum(value.size for value in inputs.values()) > LARGEST_WIDE:
        return np.float64
    narrow = subject.run_forward(widened(inputs, np.float64))
    try:
        wide = subject.run_forward(widened(inputs, np.longdouble))
    except CheckError:  # linear algebra, for example, has no wider type
        return np.float64
    same = all(a.dtype == np.longdouble and close(a, b) for a, b in zip(wide, narrow, strict=True))
    return np.longdouble if same else np.float64


def _upstream(outputs: list[Array], generator: np.random.Generator, scale: float) -> list[Array]:
    """Draw an upstream gradient for each output: both signs, none near zero."""
    drawn = [generator.normal(size=output.shape) for output in outputs]
    return [np.asarray(scale * (u + np.copysign(0.25, u))) for u in drawn]


def _perturbed(subject: Subject, upstream: list[Array], inputs: Inputs, given: Gradients) -> Gradients:
    """Return how much backward's gradients move when the inputs move by a rounding error."""
    generator = np.random.default_rng(0)
    moved = {name: np.zeros(value.shape) for name, value in given.items()}
    few = sum(value.size for value in inputs.values()) <= LARGEST_WIDE
    for _ in range(PERTURBATIONS if few else 1):  # of many entries, each is one more
        near = {
            name: value * (1 + EPS * generator.choice([-1, 0, 1], value.shape))
            if value.dtype.kind == "f"
            else value
            for name, value in inputs.items()
        }
        try:
            again = subject.run_backward(upstream, near)
        except CheckError:
            continue
        for name, value in given.items():
            if name in again and again[name].shape == value.shape:
                with np.errstate(all="ignore"):
                    moved[name] = np.fmax(moved[name], np.abs(again[name] - value))
    return moved


def _least(numerical: NumericalGradient, name: str, upstream: Array) -> float:
    """Return the size below which a gradient is zero to forward's rounding."""
    value = np.abs(numerical.exact[name])
    typical = float(np.median(value[value > 0])) if np.any(value > 0) else 1.0
    outputs = np.concatenate([output.ravel() for output in numerical.outputs])
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(ZERO * (np.abs(upstream) @ np.abs(outputs)) / typical, posinf=0.0))
