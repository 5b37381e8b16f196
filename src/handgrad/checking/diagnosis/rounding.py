"""Lost digits: gradients by the right formula, in too few digits, or through numbers that cancel."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np

from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.subject import CheckError, widened
from handgrad.checking.verdict.comparison import Evidence

CODE = "dtype-or-overflow"
MENDED = 0.05  # of the largest error may be left with more digits: of a wrong formula, all is
ROUNDINGS = 64  # of a type's rounding errors, of the largest entry: an error that is larger has another cause


def of_its_type(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Look for a gradient in whole numbers, by its type or by its entries, or in a narrower type than its argument."""
    pairs = evidence.pairs(argument)
    kind, wide = pairs[0][0].dtype, evidence.subject.inputs[argument].dtype
    off = max(
        float(np.abs(got - right).max(initial=0) / np.abs(right).max(initial=1e-300)) for got, right in pairs
    )
    whole = all(np.array_equal(got, np.round(got)) for got, _ in pairs) and any(got.any() for got, _ in pairs)
    if kind.kind in "iub" or whole:
        what, cost = (f"is {kind}", 0.1) if kind.kind in "iub" else ("has whole numbers only", 0.45)
        words = f"d{argument} {what}: what is behind the point is cut off"
        yield Diagnosis(CODE, (argument,), words, cost)
    elif kind.itemsize < wide.itemsize and off <= ROUNDINGS * float(np.finfo(kind).eps):
        words = f"d{argument} is {kind}, {argument} is {wide}, and the error is of the size of its rounding"
        yield Diagnosis(CODE, (argument,), words, 0.6)


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
        if np.all(np.isfinite(given)) and off.max() < MENDED * narrow.max():
            words = f"with more digits d{argument} is right: in float64 they cancel or overflow"
            yield Diagnosis(CODE, (argument,), words, 0.25)
