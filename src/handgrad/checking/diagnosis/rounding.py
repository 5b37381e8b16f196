"""Lost digits: gradients by the right formula, in too few digits, or through numbers that cancel."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np

from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.subject import Array, CheckError, Subject, widened
from handgrad.checking.verdict.comparison import Evidence, GradientSample

CODE = "dtype-or-overflow"
MOST = 4 * float(np.finfo(np.float16).eps)  # of the largest entry: an error that is larger is no rounding
TRIES = 5  # moves of the inputs, in the middle of which an error jumps
JUMPS = 0.25  # of the error, at the least
GROWS = 2.5  # times as much as for half the way, at the most: what is smooth bends four times as much
OF_A_TYPE = 1 / 32, 4.0  # rounding errors of a type, between which an error is its own
MENDED = 1e-2  # of an error may be left with more digits


def whole_numbers(argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    """Look for a gradient in whole numbers, by its type or by its entries."""
    kind = pairs[0][0].dtype
    whole = all(np.array_equal(got, np.round(got)) for got, _ in pairs) and any(got.any() for got, _ in pairs)
    if kind.kind in "iub" or whole:
        what, cost = (f"is {kind}", 0.1) if kind.kind in "iub" else ("has whole numbers only", 0.45)
        words = f"d{argument} {what}: what is behind the point is cut off"
        yield Diagnosis(CODE, (argument,), words, cost)


def lost_digits(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Look whether a small error is rounding: it jumps when the inputs move, and any mistake in a formula is smooth."""
    pairs = evidence.pairs(argument)
    off = max(_off(got, right) for got, right in pairs)
    if 0 < off <= MOST and _jumps(argument, evidence):
        kind = pairs[0][0].dtype
        low, high = OF_A_TYPE
        fits = (f for f in ("float32", "float16") if low <= off / float(np.finfo(f).eps) <= high)
        narrow = kind in (np.float16, np.float32)
        as_in = f" (it is {kind})" if narrow else next((f", as many as {name} has," for name in fits), "")
        words = (
            f"d{argument} has {max(0, int(-np.log10(off)))} digits right{as_in} and the others jump when the inputs "
            "move by as little: they are lost on the way"
        )
        yield Diagnosis(CODE, (argument,), words, 0.6)


def _off(got: Array, right: Array) -> float:
    """Return the largest error, relative to the largest entry."""
    return float(np.abs(got - right).max(initial=0) / max(np.abs(right).max(initial=0), 1e-300))


def _jumps(argument: str, evidence: Evidence) -> bool:
    """Whether backward's numbers bend by as much as they are off, however little the inputs move."""
    sample = evidence.comparisons[0].samples[0]
    got, right = sample.got[argument], sample.expected(argument)
    near, far = (_bend(argument, evidence.subject, sample, way * _off(got, right)) for way in (1, 2))
    return bool(near >= JUMPS * _size(got - right) and far <= GROWS * near)


def _bend(argument: str, subject: Subject, sample: GradientSample, way: float) -> float:
    """Return how far a gradient is from the mean of the two on either side of it, usually."""
    generator, found = np.random.default_rng(0), []
    middle = sample.got[argument].astype(float)

    def moved(value: Array, by: Array) -> Array:
        if value.dtype.kind != "f":
            return value
        return np.asarray(value * (1 + by) if np.any(value) else value + by)

    for _ in range(TRIES):
        by = {name: way * generator.normal(size=value.shape) for name, value in sample.inputs.items()}
        upward = [way * generator.normal(size=part.shape) for part in sample.upstream]
        sides = []
        for sign in (1, -1):
            upstream = [moved(part, sign * move) for part, move in zip(sample.upstream, upward, strict=True)]
            inputs = {name: moved(value, sign * by[name]) for name, value in sample.inputs.items()}
            try:
                sides.append(subject.run_backward(upstream, inputs)[argument].astype(float))
            except (CheckError, KeyError):
                return 0.0
        if any(side.shape != middle.shape for side in sides):
            return 0.0
        found.append(_size(sum(sides) / 2 - middle))
    return float(np.median(found))


def _size(error: Array) -> float:
    return float(np.sqrt(np.mean(np.square(error)))) if error.size else 0.0


def cast(evidence: Evidence) -> Iterator[Diagnosis]:
    """Look for a narrow type that backward names and forward does not, for inputs that are wider."""
    try:
        forward, backward = map(inspect.getsource, (evidence.subject.forward, evidence.subject.backward))
    except (OSError, TypeError):  # no source at hand
        return
    named = [word for word in ("float16", "float32", "half") if word in backward and word not in forward]
    if named and not any(value.dtype == np.float32 for value in evidence.subject.inputs.values()):
        for argument in evidence.wrong:
            words = f"d{argument} goes through {named[0]} in backward, and {argument} has more digits"
            yield Diagnosis(CODE, (argument,), words, 1.3)


def right_with_more_digits(evidence: Evidence) -> Iterator[Diagnosis]:
    """Compute backward with more digits: when that is right, the formula is, and the digits were lost."""
    comparison = evidence.comparisons[0]
    sample, wide = comparison.samples[0], widened(comparison.numerical.inputs, np.longdouble)
    try:
        upstream = [np.asarray(part, np.longdouble) for part in comparison.numerical.upstreams[0]]
        gradients = evidence.subject.run_backward(upstream, wide)
    except CheckError:
        return
    for argument in evidence.wrong:
        given, right, wrong = gradients[argument], sample.expected(argument), sample.wrong(argument)
        if given.dtype != np.longdouble or given.shape != right.shape or not wrong.any():
            continue
        off, narrow = np.abs(given - right)[wrong], np.abs(sample.got[argument] - right)[wrong]
        if np.all(np.isfinite(given)) and np.all(off < MENDED * narrow):
            words = f"with more digits d{argument} is right: in float64 they cancel or overflow"
            yield Diagnosis(CODE, (argument,), words, 0.25)
