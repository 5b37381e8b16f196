"""Lost digits: a small error that jumps when the inputs move is rounding, through numbers that cancel or a narrow type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.subject import Array, CheckError, Subject
from handgrad.checking.verdict.comparison import Evidence, GradientSample

MOST = 4 * float(np.finfo(np.float16).eps)  # of the largest entry: an error that is larger is no rounding
TRIES = 5  # moves of the inputs, in the middle of which an error jumps
JUMPS = 0.25  # of the error, at the least
GROWS = 2.5  # times as much as for half the way, at the most: what is smooth bends four times as much


def lost_digits(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Look whether a small error is rounding: it jumps when the inputs move, and any mistake in a formula is smooth."""
    pairs = evidence.pairs(argument)
    off = max(_off(got, right) for got, right in pairs)
    if 0 < off <= MOST and _jumps(argument, evidence):
        kind = pairs[0][0].dtype
        as_in = next((f", as many as {name} has," for name in ("float32", "float16") if _fits(off, name)), "")
        as_in = f" (it is {kind})" if kind in (np.float16, np.float32) else as_in
        words = (
            f"d{argument} has {max(0, int(-np.log10(off)))} digits right{as_in} and the others jump when the inputs "
            "move by as little: they are lost on the way"
        )
        yield Diagnosis("dtype-or-overflow", (argument,), words, 0.6)


def _off(got: Array, right: Array) -> float:
    """Return the largest error, relative to the largest entry."""
    return float(np.abs(got - right).max(initial=0) / max(np.abs(right).max(initial=0), 1e-300))


def _fits(off: float, name: str) -> bool:
    """Whether an error is of the size of a type's rounding."""
    eps = float(np.finfo(name).eps)
    return eps / 32 <= off <= 4 * eps


def _jumps(argument: str, evidence: Evidence) -> bool:
    """Whether backward's numbers bend by as much as they are off, however little the inputs move."""
    sample = evidence.comparisons[0].samples[0]
    got, right = sample.got[argument], sample.expected(argument)
    off = _off(got, right)
    near, far = (_bend(argument, evidence.subject, sample, way * off) for way in (1, 2))
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
        try:
            sides = [
                subject.run_backward(
                    [moved(part, sign * move) for part, move in zip(sample.upstream, upward, strict=True)],
                    {name: moved(value, sign * by[name]) for name, value in sample.inputs.items()},
                )[argument].astype(float)
                for sign in (1, -1)
            ]
        except (CheckError, KeyError):
            return 0.0
        if any(side.shape != middle.shape for side in sides):
            return 0.0
        found.append(_size((sides[0] + sides[1]) / 2 - middle))
    return float(np.median(found))


def _size(error: Array) -> float:
    return float(np.sqrt(np.mean(np.square(error)))) if error.size else 0.0
