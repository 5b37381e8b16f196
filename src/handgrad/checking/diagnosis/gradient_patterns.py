"""Mistakes that the numbers alone give away, without looking into forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from handgrad.checking.diagnosis.candidate import Diagnosis, nearer
from handgrad.checking.diagnosis.jacobian_patterns import by_jacobian
from handgrad.checking.diagnosis.rounding import cast, lost_digits, right_with_more_digits, whole_numbers
from handgrad.checking.draws import shorter
from handgrad.checking.subject import Array, CheckError, widened
from handgrad.checking.verdict.comparison import Evidence, compare, numerical_gradient
from handgrad.finite_differences import NumericalJacobian
from handgrad.tolerance import close


def by_numbers(evidence: Evidence) -> Iterator[Diagnosis]:
    """Yield every mistake that explains some of the wrong gradients by a simple relation to the right ones."""
    yield from _swapped(evidence)
    for argument in evidence.wrong:
        pairs = evidence.pairs(argument)
        shape = pairs[0][1].shape
        if any(got.shape != shape for got, _ in pairs):
            yield from _shapes(argument, pairs)
            continue
        if any(not np.all(np.isfinite(got)) for got, _ in pairs):
            yield Diagnosis("dtype-or-overflow", (argument,), _not_finite(argument, pairs), 0.5)
            continue
        yield from whole_numbers(argument, pairs)
        yield from lost_digits(argument, evidence)
        yield from _relations(argument, pairs)
        yield from _factor(evidence, argument, pairs)
        yield _by_pattern(argument, evidence)
        yield from by_jacobian(argument, evidence)
    yield from right_with_more_digits(evidence)
    yield from cast(evidence)


def affine(evidence: Evidence, argument: str) -> tuple[str, float]:
    """Return the code and the cost of a gradient that is not zero for a zero upstream gradient.

    Some of it takes the upstream gradient to be ones, and then all is right where that is; or something is added.
    """
    numerical, subject = evidence.comparisons[0].numerical, evidence.subject
    jacobian = numerical.jacobians[argument]
    zero, one = (
        subject.run_backward([np.full(output.shape, number) for output in numerical.outputs], numerical.exact)
        for number in (0.0, 1.0)
    )
    added = zero[argument]
    samples = evidence.comparisons[0].samples
    pairs = [(sample.got[argument], sample.expected(argument)) for sample in samples]
    if any(got.shape != right.shape for got, right in pairs):
        return "ignores-upstream", 0.15
    if all(close(got - added, right) for got, right in pairs):
        return "extra-term", 0.12
    if isinstance(jacobian, NumericalJacobian) and not all(close(added, got) for got, _ in pairs):
        low, high, _ = jacobian.allowed(np.ones(len(jacobian.low)))
        if not close(one[argument].ravel(), np.asarray((low + high) / 2, float)):
            return "extra-term", 1.6
    return "ignores-upstream", 0.15


def _swapped(evidence: Evidence) -> Iterator[Diagnosis]:
    for one, other in combinations(evidence.wrong, 2):
        mine, others = evidence.pairs(one), evidence.pairs(other)
        if all(
            close(right_other, got) and close(right, got_other)
            for (got, right), (got_other, right_other) in zip(mine, others, strict=True)
        ):
            yield Diagnosis(
                "swapped-gradients",
                (one, other),
                f"d{one} is what d{other} should be, and d{other} what d{one} should",
                0.1,
            )


def _relations(argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    relations: tuple[tuple[str, Callable[[Array], Array], str, float], ...] = (
        ("zero-gradient", np.zeros_like, "d{0} is zero everywhere, and it should not be", 0.2),
        ("wrong-sign", np.negative, "every entry of d{0} is the right one with the opposite sign", 0.3),
    )
    for code, relation, words, cost in relations:
        if all(close(relation(right), got) for got, right in pairs):
            yield Diagnosis(code, (argument,), words.format(argument), cost)
    if all(
        close(np.zeros_like(right), right, least=float(np.abs(got).max(initial=0))) for got, right in pairs
    ):
        words = (
            f"d{argument} should be zero everywhere: forward is flat, as a step is, and a slope is handed on"
        )
        yield Diagnosis("wrong-local-derivative", (argument,), words, 0.5)
    shape = pairs[0][1].shape
    if (
        len(shape) >= 2
        and shape[-1] == shape[-2]
        and all(close(np.swapaxes(right, -1, -2), got) for got, right in pairs)
    ):
        yield Diagnosis("transposed", (argument,), f"d{argument} is the transpose of the right one", 0.3)


def _shapes(argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    """Explain a gradient of another shape: not summed, transposed, or simply another array."""
    got_shape, shape = pairs[0][0].shape, pairs[0][1].shape
    words = f"d{argument} has shape {got_shape}, and {argument} has {shape}"
    if all(got.ndim >= 2 and close(np.swapaxes(got, -1, -2), right) for got, right in pairs):
        yield Diagnosis("transposed", (argument,), f"{words}: it is the transpose of the right one", 0.3)
    if all(_sums_to(got, right) for got, right in pairs):
        yield Diagnosis(
            "broadcast-not-summed", (argument,), f"{words}: summed to that shape it would be right", 0.2
        )
    yield Diagnosis("wrong-shape", (argument,), words, 1.55)


def _sums_to(got: Array, right: Array) -> bool:
    """Whether a gradient becomes the right one when it is summed over some of its axes."""
    for count in range(1, got.ndim + 1):
        for axes in combinations(range(got.ndim), count):
            if not all(got.shape[axis] > 1 for axis in axes):
                continue
            summed = got.sum(axis=axes)
            if summed.size == right.size and close(summed.reshape(right.shape), right):
                return True
    return False


def _factor(evidence: Evidence, argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    """Explain a gradient that is a constant times the right one, everywhere and always."""
    factors = [float((got * right).sum() / max((right * right).sum(), 1e-300)) for got, right in pairs]
    factor = factors[0]
    if factor == 0 or not all(close(f, factor) for f in factors):
        return
    if abs(factor - 1) < 1e-9 or close(factor, -1.0):
        return
    if not all(close(factor * right, got) and nearer(factor * right, got, right) for got, right in pairs):
        return
    words = f"every entry of d{argument} is {factor:.6g} times the right one"
    sizes = _batch_sizes(evidence, argument, factor)
    if sizes:
        cost = 0.45 if _counts_features(evidence, argument, factor) else 0.35
        yield Diagnosis("batch-mean-vs-sum", (argument,), f"{words}: {sizes}", cost)
    yield Diagnosis("constant-factor", (argument,), words, 0.4)


def _counts_features(evidence: Evidence, argument: str, factor: float) -> bool:
    """Whether a factor is the number of the argument's own columns, and of no rows anywhere: no batch is that."""
    shape = evidence.subject.inputs[argument].shape
    size = round(max(abs(factor), 1 / abs(factor)))
    tables = [
        value.shape for value in evidence.subject.inputs.values() if value.ndim > 1 and size in value.shape
    ]
    return shape[-1:] == (size,) and bool(tables) and not any(size in table[:-1] for table in tables)


def _batch_sizes(evidence: Evidence, argument: str, factor: float) -> str:
    """Say whether a factor is the number of rows or its inverse; fewer rows decide, where they can be had."""
    sizes = {size for value in evidence.subject.inputs.values() for size in value.shape if size > 1}
    near = [n for n in sizes if close(abs(factor), n) or close(abs(factor) * n, 1.0)]
    counts = {a * b for a in sizes for b in sizes} | sizes
    if not near:
        near = [n for n in counts if close(abs(factor), n) or close(abs(factor) * n, 1.0)]
        if not near or min(near) <= 4:
            return ""
        return f"{near[0]} is a product of the sizes"
    size = near[0]
    fewer = _factor_with_fewer(evidence, argument, size)
    if fewer is None:
        return f"{size} is the length of an axis" if size not in (2, 4) else ""
    if close(fewer, factor):
        return ""
    return f"{size} is the length of an axis, and with {size - 1} it is {fewer:.6g} times"


def _factor_with_fewer(evidence: Evidence, argument: str, size: int) -> float | None:
    """Return the factor when every axis of this length is one shorter, or None when that cannot be."""
    for inputs in shorter(widened(evidence.subject.inputs, np.float64), size):
        try:
            numerical = numerical_gradient(evidence.subject, inputs, (argument,), 1)
            sample = compare(evidence.subject, numerical).samples[0]
        except (CheckError, ValueError, IndexError):
            continue
        got, right = sample.got[argument], sample.expected(argument)
        if got.shape != right.shape:
            continue
        factor = float((got * right).sum() / max((right * right).sum(), 1e-300))
        if close(factor * right, got):
            return factor
    return None


def _not_finite(argument: str, pairs: list[tuple[Array, Array]]) -> str:
    bad = sum(int((~np.isfinite(got)).sum()) for got, _ in pairs)
    total = sum(got.size for got, _ in pairs)
    return f"{bad} of {total} entries of d{argument} are NaN or infinite, where the right ones are finite"


def _by_pattern(argument: str, evidence: Evidence) -> Diagnosis:
    """Say what the wrong entries look like, when no known mistake gives them."""
    samples = evidence.comparisons[0].samples
    pairs = [(sample.got[argument], sample.expected(argument)) for sample in samples]
    wrong = np.any([sample.wrong(argument) for sample in samples], axis=0)
    count = f"{int(wrong.sum())} of {wrong.size} entries"
    if all(np.all(got[wrong] == 0) for got, _ in pairs):
        return Diagnosis(
            "missing-term", (argument,), f"{count} of d{argument} are zero, and nothing else is wrong", 3.0
        )
    with np.errstate(all="ignore"):
        ratios = [got[wrong] / right[wrong] - 1 for got, right in pairs]
    several = sum(part.size for part in samples[0].upstream) > 1  # one number of upstream is a factor always
    if several and all(
        np.allclose(ratio, ratios[0], rtol=1e-6, atol=1e-9, equal_nan=True) for ratio in ratios
    ):
        words = (
            f"{count} of d{argument} are off by a factor of their own, the same for every upstream gradient"
        )
        return Diagnosis("wrong-local-derivative", (argument,), words, 3.0)
    return Diagnosis(
        "missing-term",
        (argument,),
        f"{count} of d{argument} are off, and not by a factor: a path differs",
        3.2,
    )
