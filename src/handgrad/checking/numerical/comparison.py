"""Whether each gradient is right: what backward returns, compared with the numerical gradient of forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.checking.numerical.directional import Projections, Rounding, few_enough, outputs_of, project
from handgrad.checking.numerical.finite_differences import NumericalJacobian, numerical_jacobian
from handgrad.checking.numerical.reference import Reference
from handgrad.checking.subject import CheckError, Gradients, Inputs, Subject, widened
from handgrad.checking.subject.draws import beside

Array = NDArray[Any]

UPSTREAMS = 3
DIGITS = 0.6  # of its digits a gradient must have right: to 4e-10 in float64, 7e-5 in float32
LARGEST_WIDE = 20_000  # entries of all inputs: products of more take long beyond float64
LOOKED_AT = 8  # wrong entries, the worst first, whose kinks are counted
PERTURBED = 4  # evaluations of backward, each input a rounding error away, that show its own rounding


@dataclass(frozen=True)
class GradientSample:
    """One upstream gradient at some inputs, what backward returned for it, and what is right.

    Attributes
    ----------
    inputs
        With all floating point in float64.
    upstream
        One array for each output, both signs.
    got
        What backward returned, by argument.
    low, high
        The gradients that the slopes allow, in the argument's shape; equal where there is no kink.
    tolerance
        The error bar: of the slopes, of backward's rounding, and of the inputs' and outputs' type.
    magnitude
        The size of what adds up to each entry.
    """

    inputs: Inputs
    upstream: list[Array]
    got: Gradients
    low: Gradients
    high: Gradients
    tolerance: Gradients
    magnitude: Gradients

    def wrong(self, argument: str) -> Array:
        """Return which entries of an argument's gradient are outside what is allowed, in its shape."""
        got = self.got[argument]
        if got.shape != self.low[argument].shape:
            return np.ones(self.low[argument].shape, bool)
        return ~(self.excess(argument) <= self.tolerance[argument])  # not a number is wrong

    def excess(self, argument: str) -> Array:
        """Return how far each entry is outside what is allowed."""
        got = self.got[argument].astype(self.low[argument].dtype)
        with np.errstate(all="ignore"):
            return np.maximum(np.maximum(self.low[argument] - got, got - self.high[argument]), 0)

    def expected(self, argument: str) -> Array:
        """Return the right gradient: of what is allowed, the nearest to what backward returned."""
        low, high, got = self.low[argument], self.high[argument], self.got[argument]
        if got.shape != low.shape or not np.all(np.isfinite(got)):
            return np.asarray((low + high) / 2, np.float64)
        return np.asarray(np.clip(got.astype(low.dtype), low, high), np.float64)


@dataclass(frozen=True)
class NumericalGradient:
    """The derivatives of forward at some inputs, and the upstream gradients that backward is compared at.

    Attributes
    ----------
    inputs, exact
        As given, and with all floating point in float64.
    outputs
        Of forward, there.
    upstreams
        For each sample, one gradient for each output.
    jacobians
        Of all outputs laid end to end, by argument: along each coordinate, or along some directions.
    """

    inputs: Inputs
    exact: Inputs
    outputs: list[Array]
    upstreams: tuple[list[Array], ...]
    jacobians: dict[str, NumericalJacobian | Projections]


@dataclass(frozen=True)
class Comparison:
    """Backward's gradients beside the numerical ones, at some inputs.

    Attributes
    ----------
    numerical
        What they are compared with.
    samples
        One for each upstream gradient.
    wrong
        The arguments whose gradient is not right.
    doubtful
        Those whose error bar is too wide to tell, with the reason.
    """

    numerical: NumericalGradient
    samples: tuple[GradientSample, ...]
    wrong: tuple[str, ...]
    doubtful: dict[str, str]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments that backward differentiates."""
        return tuple(self.numerical.jacobians)


def numerical_gradient(
    subject: Subject, inputs: Inputs, arguments: tuple[str, ...], seed: int
) -> NumericalGradient:
    """Differentiate forward numerically at some inputs, and draw upstream gradients to compare backward at.

    Where an argument has too many entries to look at each of them, kinks are stepped aside from first.
    """
    kind = precision(subject, inputs)
    small = few_enough(subject, widened(inputs, kind), arguments)
    if len(small) < len(arguments) and kind is np.longdouble:
        kind = np.float64
        small = few_enough(subject, widened(inputs, kind), arguments)
    if len(small) < len(arguments):
        inputs = beside(subject, inputs, arguments, np.random.default_rng(seed))
    wide = widened(inputs, kind)
    outputs = subject.run_forward(wide)
    if not all(np.all(np.isfinite(output)) for output in outputs):
        raise CheckError("forward is not finite at these inputs", fix="give inputs at which it is")
    generator = np.random.default_rng(seed)
    upstreams = tuple(_upstream(outputs, generator) for _ in range(UPSTREAMS))
    exact = widened(inputs, np.float64)
    reference = Reference(subject, exact)
    found: dict[str, NumericalJacobian | Projections] = {}
    for name in arguments:
        if name in small:
            found[name] = numerical_jacobian(outputs_of(subject, wide, name), wide[name])
        else:
            found[name] = project(outputs_of(subject, exact, name), exact[name], reference, name, generator)
    return NumericalGradient(inputs, exact, outputs, upstreams, found)


def compare(subject: Subject, numerical: NumericalGradient) -> Comparison:
    """Compare a backward's gradients, in float64, with the numerical ones."""
    samples = []
    for upstream in numerical.upstreams:
        gradients = subject.run_backward(upstream, numerical.exact)
        noise = _rounding(subject, upstream, numerical.exact, gradients)
        samples.append(_sample(upstream, gradients, noise, numerical))
    arguments = tuple(numerical.jacobians)
    wrong = tuple(name for name in arguments if any(sample.wrong(name).any() for sample in samples))
    return Comparison(numerical, tuple(samples), wrong, _doubtful(samples, arguments, wrong))


def rejudge_off_kinks(subject: Subject, comparison: Comparison, seed: int) -> Comparison:
    """Return the comparison, or another from beside the inputs where only kinks make a gradient look wrong.

    Where several kinks meet in one entry, at zeros and ties, what is right cannot be had from the slopes there. Where
    it is one alone, the slopes of its two sides say all.
    """
    inputs, wrong = comparison.numerical.inputs, comparison.wrong
    finite = all(
        sample.got[name].shape == inputs[name].shape and np.all(np.isfinite(sample.got[name]))
        for sample in comparison.samples
        for name in wrong
    )
    if not wrong or not finite or not any(_is_special(value) for value in inputs.values()):
        return comparison
    if _at_one_kink(subject, comparison):
        return comparison
    moved = beside(subject, inputs, comparison.arguments, np.random.default_rng(seed))
    other = compare(subject, numerical_gradient(subject, moved, comparison.arguments, seed))
    return other if set(wrong) - set(other.wrong) else comparison


def _at_one_kink(subject: Subject, comparison: Comparison) -> bool:
    """Whether one of the worst entries stands at a single kink, so that what its slopes say of it is final."""
    reference, sample = Reference(subject, comparison.numerical.exact), comparison.samples[0]
    for name in comparison.wrong:
        if isinstance(comparison.numerical.jacobians[name], NumericalJacobian):
            excess = np.where(sample.wrong(name), sample.excess(name), 0)
            for position in np.argsort(-excess, axis=None)[:LOOKED_AT]:
                index = tuple(map(int, np.unravel_index(int(position), excess.shape)))
                if excess[index] > 0 and reference.kinks_left(name, index) == 1:
                    return True
    return False


def _is_special(value: Array) -> bool:
    """Whether an array holds round numbers, or one number twice, as kinks and ties stand at."""
    if value.dtype.kind != "f" or value.size == 0:
        return False
    return bool(np.any(value * 64 == np.round(value * 64)) or np.unique(np.abs(value)).size < value.size)


def precision(subject: Subject, inputs: Inputs) -> type[np.floating[Any]]:
    """Return the widest type in which forward runs and gives the same: its slopes are the sharper for it."""
    if sum(value.size for value in inputs.values()) > LARGEST_WIDE:
        return np.float64
    narrow = subject.run_forward(widened(inputs, np.float64))
    try:
        wide = subject.run_forward(widened(inputs, np.longdouble))
    except CheckError:  # linear algebra, for example, has no wider type
        return np.float64
    same = all(
        a.dtype == np.longdouble
        and a.shape == b.shape
        and np.allclose(a.astype(float), b, 1e-6, equal_nan=True)
        for a, b in zip(wide, narrow, strict=True)
    )
    return np.longdouble if same else np.float64


def _upstream(outputs: list[Array], generator: np.random.Generator) -> list[Array]:
    """Draw an upstream gradient for each output: both signs, none near zero."""
    drawn = [generator.normal(size=output.shape) for output in outputs]
    return [np.asarray(u + np.copysign(0.25, u)) for u in drawn]


def _rounding(subject: Subject, upstream: list[Array], inputs: Inputs, given: Gradients) -> Gradients:
    """Return how much backward's gradients move when the inputs move by a rounding error."""
    eps, generator = np.finfo(np.float64).eps, np.random.default_rng(0)
    moved = {name: np.zeros(value.shape) for name, value in given.items()}
    for _ in range(PERTURBED):
        near = {
            name: value * (1 + eps * generator.choice([-1, 0, 1], value.shape))
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


def _sample(
    upstream: list[Array], given: Gradients, noise: Gradients, numerical: NumericalGradient
) -> GradientSample:
    """Put together what an upstream gradient's gradients must be."""
    flat = np.concatenate([part.ravel() for part in upstream])
    low, high, tolerance, magnitude = {}, {}, {}, {}
    least = {name: _least(numerical, name, flat) for name in numerical.jacobians}
    eps = coarsest(
        *numerical.inputs.values(), *numerical.outputs
    )  # not of the gradient: its digits are backward's
    for name, slope in numerical.jacobians.items():
        shape = numerical.inputs[name].shape
        if isinstance(slope, Projections):
            bounds = slope.bounds(upstream, given[name], Rounding(noise[name], eps, eps**DIGITS, least[name]))
            low[name], high[name] = bounds.low, bounds.high
            tolerance[name], magnitude[name] = bounds.tolerance, bounds.magnitude
            continue
        lowest, highest, error = slope.allowed(flat)
        size = np.maximum(slope.magnitude(flat), least[name])
        largest = size.max(initial=0)
        # rounding beyond a millionth is no rounding to be excused: it is lost precision
        excused = np.minimum(16 * noise[name].ravel(), 1e-6 * size) if noise[name].shape == shape else 0
        bar = 8 * error + excused + eps**DIGITS * size + 64 * eps * largest
        low[name], high[name] = lowest.reshape(shape), highest.reshape(shape)
        tolerance[name], magnitude[name] = bar.reshape(shape), size.reshape(shape)
    return GradientSample(numerical.exact, upstream, given, low, high, tolerance, magnitude)


def _least(numerical: NumericalGradient, name: str, upstream: Array) -> float:
    """Return the size below which a gradient is zero to forward's rounding."""
    value = np.abs(numerical.exact[name])
    typical = float(np.median(value[value > 0])) if np.any(value > 0) else 1.0
    outputs = np.concatenate([output.ravel() for output in numerical.outputs])
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(1e-9 * (np.abs(upstream) @ np.abs(outputs)) / typical, posinf=0.0))


def coarsest(*arrays: Array) -> float:
    """Return the rounding error of the type with the fewest digits: functions compute in that of what they are given."""
    kinds = [array.dtype for array in arrays if array.dtype.kind == "f" and array.dtype != np.longdouble]
    return max(float(np.finfo(kind).eps) for kind in kinds) if kinds else float(np.finfo(np.float64).eps)


def _doubtful(
    samples: list[GradientSample], arguments: tuple[str, ...], wrong: tuple[str, ...]
) -> dict[str, str]:
    """Return the arguments whose slopes are known too badly to judge a gradient by."""
    doubtful: dict[str, str] = {}
    for name in arguments:
        if name in wrong:
            continue
        for sample in samples:
            bar, size = sample.tolerance[name], sample.magnitude[name].max(initial=0)
            if size > 0 and bar.max(initial=0) > 1e-2 * size:
                doubtful[name] = (
                    f"its slopes are known to {float(bar.max() / size):.0e} only: forward is too rough there"
                )
    return doubtful
