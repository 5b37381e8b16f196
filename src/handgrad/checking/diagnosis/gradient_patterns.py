"""Mistakes that the numbers alone give away, without looking into forward: gradients, and whole Jacobians."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from handgrad.checking.diagnosis.batch_sizes import batch_sizes, counts_features
from handgrad.checking.diagnosis.mutated_chain_rule import explains
from handgrad.checking.diagnosis.rounding import lost_digits
from handgrad.checking.mistakes import Diagnosis
from handgrad.checking.subject import Array, CheckError, widened
from handgrad.checking.verdict.comparison import Evidence, NumericalGradient
from handgrad.finite_differences import NumericalJacobian
from handgrad.tolerance import SAME, close

Pairs = list[tuple[Array, Array]]  # what backward returned, and what is right, for several upstream gradients

MENDED = 0.05  # of the largest error may be left with more digits: of a wrong formula, all is
MOST_OUTPUTS = 128  # for each of which backward runs once
LARGEST_JACOBIAN = 65_536  # entries
TINY = SAME / 10  # of the largest entry of a Jacobian: what is smaller is zero
LARGEST_FACTOR = 1e6  # of a mistake: by more, nothing but rounding errors is multiplied

# Costs: a relation that many entries obey is hardly chance; the kind of the wrong entries is the last resort.
EXTRA, JOINT, DIVIDED = 0.7, 0.73, 0.75
BACKWARDS, MOVED = 0.71, 0.72  # the array that is read transposed or flipped says more
UNMASKED = 0.9  # where all that should not be zero is right
LAST = 3.1
MIXED = 2.5  # where backward mixes what forward keeps apart, and the rest suffers from it

KINDS = {
    # which entries of a Jacobian are wrong: nonzero in both, missing, not to be there
    (True, False, False): ("", "are of another size"),
    (False, True, False): ("missing-term", "are missing"),
    (True, True, False): ("missing-term", "are missing or of another size"),
    (False, False, True): ("wrong-axis", "should be zero: forward keeps apart what is mixed there"),
    (True, False, True): ("wrong-axis", "should be zero, or are of another size"),
    (False, True, True): ("wrong-axis", "are at the wrong places"),
    (True, True, True): ("wrong-axis", "are at the wrong places"),
}


def _order_of(pairs: Pairs) -> str:
    """Say how the right numbers were put in another order; empty where they are not the same numbers."""
    if any(
        close(got, right) or not close(np.sort(got, axis=None), np.sort(right, axis=None))
        for got, right in pairs
    ):
        return ""
    for axis in range(pairs[0][1].ndim):
        if all(close(np.flip(right, axis), got) for got, right in pairs):
            return f"flipped along axis {axis}"
        for step in (1, -1):
            if all(close(np.roll(right, step, axis), got) for got, right in pairs):
                return f"shifted by one along axis {axis}"
    return "in another order"


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
            bad = sum(int((~np.isfinite(got)).sum()) for got, _ in pairs)
            total = sum(got.size for got, _ in pairs)
            words = f"{bad} of {total} entries of d{argument} are NaN or infinite, where the right ones are finite"
            yield Diagnosis("dtype-or-overflow", (argument,), words, 0.5)
            continue
        yield from _whole_numbers(argument, pairs)
        yield from lost_digits(argument, evidence)
        yield from _relations(argument, pairs)
        yield from _slope_of_a_step(argument, evidence, pairs)
        yield from _factor(evidence, argument, pairs)
        yield from _extra_terms(argument, evidence)
        yield from _left_out_of_loss(argument, evidence)
        yield _by_entries(argument, evidence)
        yield from by_jacobian(argument, evidence)
    yield from _right_with_more_digits(evidence)
    yield from _cast(evidence)


def affine(evidence: Evidence, argument: str) -> tuple[str, float]:
    """Return the code and the cost of a gradient that is not zero for a zero upstream gradient.

    Some of it takes the upstream gradient to be ones, and then all is right where that is; or something is added.
    """
    numerical, subject = evidence.comparisons[0].numerical, evidence.subject
    jacobian = numerical.jacobians[argument]
    upstreams = ([np.full(output.shape, number) for output in numerical.outputs] for number in (0.0, 1.0))
    added, one = (subject.run_backward(upstream, numerical.exact)[argument] for upstream in upstreams)
    samples = evidence.comparisons[0].samples
    pairs = [(sample.got[argument], sample.expected(argument)) for sample in samples]
    if all(got.shape == right.shape for got, right in pairs):
        if all(close(got - added, right) for got, right in pairs):
            return "extra-term", 0.12
        if isinstance(jacobian, NumericalJacobian) and not all(close(added, got) for got, _ in pairs):
            low, high, _ = jacobian.allowed(np.ones(len(jacobian.low)))
            if not close(one.ravel(), np.asarray((low + high) / 2, float)):
                return "extra-term", 1.6
    return "ignores-upstream", 0.15


def _swapped(evidence: Evidence) -> Iterator[Diagnosis]:
    for one, other in combinations(evidence.wrong, 2):
        pairs = zip(evidence.pairs(one), evidence.pairs(other), strict=True)
        if all(close(b, mine) and close(a, others) for (mine, a), (others, b) in pairs):
            words = f"d{one} is what d{other} should be, and d{other} what d{one} should"
            yield Diagnosis("swapped-gradients", (one, other), words, 0.1)


def _relations(argument: str, pairs: Pairs) -> Iterator[Diagnosis]:
    for code, relation, words, cost in (
        ("zero-gradient", np.zeros_like, "d{0} is zero everywhere, and it should not be", 0.2),
        ("wrong-sign", np.negative, "every entry of d{0} is the right one with the opposite sign", 0.3),
        ("transposed", _transpose, "d{0} is the transpose of the right one", 0.3),
    ):
        if all(explains(relation(right), got, right) for got, right in pairs):
            yield Diagnosis(code, (argument,), words.format(argument), cost)
    if words := _order_of(pairs):
        words = f"d{argument} has the right numbers, {words}"
        yield Diagnosis("wrong-position", (argument,), words, MOVED)


def _slope_of_a_step(argument: str, evidence: Evidence, pairs: Pairs) -> Iterator[Diagnosis]:
    """Explain a gradient through what is flat; through any other forward, it is zero at these inputs only."""
    flat = all(close(0 * right, right, least=float(np.abs(got).max(initial=0))) for got, right in pairs)
    if flat and not (evidence.trace is not None and evidence.trace.reaches(argument)):
        words = f"d{argument} should be zero: forward is flat, as a step is, and a slope is handed on"
        words += "; where that is meant, give what forward stands for: check(…, surrogate=…)"
        yield Diagnosis("wrong-local-derivative", (argument,), words, 0.5)


def _extra_terms(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Look for a constant times an input in what a gradient of a loss has too much: a penalty's, of all or some entries."""
    samples = list(evidence.samples())
    if any(sum(part.size for part in sample.upstream) != 1 for sample in samples):
        return
    off = [(s.got[argument] - s.expected(argument)) / float(s.upstream[0].sum()) for s in samples]
    wrong = np.any([sample.wrong(argument) for sample in samples], axis=0)
    for form, function in (("{0}", np.asarray), ("np.sign({0})", np.sign)):
        values = [function(sample.inputs[argument]) for sample in samples]
        part = np.where(wrong, values[0], 0.0)
        size = float((part**2).sum())
        factor = float((off[0] * part).sum()) / size if size else 0.0
        if factor and all(
            close(each, np.where(wrong, factor * v, 0.0)) for each, v in zip(off, values, strict=True)
        ):
            where = "" if wrong.all() else f" in {int(wrong.sum())} of {wrong.size} entries"
            words = f"d{argument} has {factor:.6g} * {form.format(argument)} too much{where}"
            yield Diagnosis("extra-term", (argument,), words, EXTRA)


def _left_out_of_loss(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Look for a factor in which a loss's derivative differs in each entry: one that others cancel, as p (1 - p)."""
    pairs = evidence.pairs(argument)
    values = [sample.inputs[argument] for sample in evidence.samples()]
    forms = (("{0} * (1 - {0})", lambda y: y * (1 - y)), ("{0}", np.asarray), ("{0}**2", np.square))
    for form, function in (*forms, ("(1 - {0}**2)", lambda y: 1 - y**2)):
        with np.errstate(all="ignore"):
            ratios = [
                (got / (right * function(v))).ravel() for (got, right), v in zip(pairs, values, strict=True)
            ]
        every = np.concatenate(ratios)
        if (
            every.size > len(pairs)
            and np.all(np.isfinite(every))
            and close(every, np.full(every.shape, every[0]))
        ):
            text = form.format(argument)
            times = "" if close(every[0], 1.0) else f", and it is {every[0]:.6g} times as large"
            words = f"the right d{argument} is divided by {text}, and this one is not{times}"
            yield Diagnosis(
                "missing-local-derivative", (argument,), words, DIVIDED, alternative="wrong-local-derivative"
            )


def _transpose(value: Array) -> Array:
    return np.swapaxes(value, -1, -2) if value.ndim > 1 else value


def _shapes(argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    """Explain a gradient of another shape: not summed, transposed, or simply another array."""
    words = f"d{argument} has shape {pairs[0][0].shape}, and {argument} has {pairs[0][1].shape}"
    if all(close(_transpose(got), right) for got, right in pairs):
        yield Diagnosis("transposed", (argument,), f"{words}: it is the transpose of the right one", 0.3)
    if all(_sums_to(got, right) for got, right in pairs):
        words_of_sum = f"{words}: summed to that shape it would be right"
        yield Diagnosis("broadcast-not-summed", (argument,), words_of_sum, 0.2)
    yield Diagnosis("wrong-shape", (argument,), words, 1.55)


def _sums_to(got: Array, right: Array) -> bool:
    """Whether a gradient becomes the right one when it is summed over some of its axes."""
    long = [axis for axis, length in enumerate(got.shape) if length > 1]
    sums = (got.sum(axis=axes) for count in range(1, len(long) + 1) for axes in combinations(long, count))
    return any(total.size == right.size and close(total.reshape(right.shape), right) for total in sums)


def _factor(evidence: Evidence, argument: str, pairs: Pairs) -> Iterator[Diagnosis]:
    """Explain a gradient that is a constant times the right one, everywhere and always: the number of rows, or another."""
    factor, *others = (_times(got, right) for got, right in pairs)
    if abs(factor) > LARGEST_FACTOR:  # of rounding errors: it should be zero here
        return
    if not factor or not all(close(other, factor) for other in others) or close(factor, -1.0):
        return
    if not all(explains(factor * right, got, right) for got, right in pairs):
        return

    def factor_at(other: Evidence) -> float | None:
        got, right = other.pairs(argument)[0]
        fits = got.shape == right.shape and close(_times(got, right) * right, got)
        return _times(got, right) if fits else None

    words = f"every entry of d{argument} is {factor:.6g} times the right one"
    if sizes := batch_sizes(evidence, (argument,), factor, factor_at):
        cost = 0.45 if counts_features(evidence, argument, factor) else 0.35
        yield Diagnosis("batch-mean-vs-sum", (argument,), f"{words}: {sizes}", cost)
    yield Diagnosis("constant-factor", (argument,), words, 0.4)


def _times(got: Array, right: Array) -> float:
    """Return what the right gradient has to be multiplied by."""
    return float((got * right).sum() / max((right * right).sum(), 1e-300))


def _by_entries(argument: str, evidence: Evidence) -> Diagnosis:
    """Say what the wrong entries look like, when no known mistake gives them."""
    samples = evidence.comparisons[0].samples
    wrong = np.any([sample.wrong(argument) for sample in samples], axis=0)
    pairs = [(sample.got[argument][wrong], sample.expected(argument)[wrong]) for sample in samples]
    count = f"{int(wrong.sum())} of {wrong.size} entries of d{argument} are"
    if not any(got.any() for got, _ in pairs):
        return Diagnosis("missing-term", (argument,), f"{count} zero, and nothing else is wrong", LAST - 0.1)
    several = sum(part.size for part in samples[0].upstream) > 1  # one number of upstream is a factor always
    with np.errstate(all="ignore"):
        ratios = [got / right - 1 for got, right in pairs]
    if several and all(close(ratio, ratios[0]) for ratio in ratios):
        words = f"{count} off by a factor of their own, the same for every upstream gradient"
        return Diagnosis("wrong-local-derivative", (argument,), words, LAST - 0.1)
    return Diagnosis(
        "missing-term", (argument,), f"{count} off, and not by a factor: a path differs", LAST + 0.1
    )


def _whole_numbers(argument: str, pairs: list[tuple[Array, Array]]) -> Iterator[Diagnosis]:
    """Look for a gradient in whole numbers, by its type or by its entries."""
    kind = pairs[0][0].dtype
    whole = all(np.array_equal(got, np.round(got)) for got, _ in pairs) and any(got.any() for got, _ in pairs)
    if kind.kind in "iub" or whole:
        what, cost = (f"is {kind}", 0.1) if kind.kind in "iub" else ("has whole numbers only", 0.45)
        words = f"d{argument} {what}: what is behind the point is cut off"
        yield Diagnosis("dtype-or-overflow", (argument,), words, cost)


def _cast(evidence: Evidence) -> Iterator[Diagnosis]:
    """Look for a narrow type that backward names and forward does not, for inputs that are wider."""
    try:
        forward, backward = map(inspect.getsource, (evidence.subject.forward, evidence.subject.backward))
    except (OSError, TypeError):  # no source at hand
        return
    named = [word for word in ("float16", "float32", "half") if word in backward and word not in forward]
    if named and not any(value.dtype == np.float32 for value in evidence.subject.inputs.values()):
        for argument in evidence.wrong:
            words = f"d{argument} goes through {named[0]} in backward, and {argument} has more digits"
            yield Diagnosis("dtype-or-overflow", (argument,), words, 1.3)


def _right_with_more_digits(evidence: Evidence) -> Iterator[Diagnosis]:
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
            yield Diagnosis("dtype-or-overflow", (argument,), words, 0.25)


def by_jacobian(argument: str, evidence: Evidence) -> Iterator[Diagnosis]:
    """Compare what backward hands on from each output to each entry of an argument with what it should."""
    right = _right_jacobian(argument, evidence.comparisons[0].numerical)
    if right is None:
        return
    way = f"from the output to d{argument}"
    if right.shape[0] == right.shape[1] > 1 and all(
        explains(
            right @ _joined(sample.upstream), sample.got[argument].ravel(), sample.expected(argument).ravel()
        )
        for sample in evidence.comparisons[0].samples
    ):
        words = f"the Jacobian is used {way}, not its transpose"
        yield Diagnosis("transposed", (argument,), words, BACKWARDS)
    given = _given_jacobian(argument, evidence)
    if given is None:
        return
    if right.shape[0] == right.shape[1] > 1 and explains(np.diag(np.diag(right)), given, right):
        words = f"of the Jacobian only the diagonal is used {way}"
        yield Diagnosis("missing-term", (argument,), words, 1.0)
    yield from _of_all_rows(argument, evidence.comparisons[0].numerical, right, given)
    tiny = TINY * float(np.abs(right).max(initial=0))
    there, used = np.abs(right) > tiny, np.abs(given) > tiny
    wrong = np.abs(given - right) > tiny
    kind = bool(np.any(wrong & there & used)), bool(np.any(wrong & ~used)), bool(np.any(wrong & ~there))
    code, words = KINDS.get(kind, KINDS[True, False, False])
    # entry by entry there is one slope to be wrong; elsewhere several paths meet, and one differs
    slopes = there | used
    entrywise = min(right.shape) > 1 and slopes.sum(axis=1).max() <= 1
    one_output_each = min(right.shape) > 1 and slopes.sum(axis=0).max() <= 1  # as of a maximum over windows
    unmasked = (entrywise or one_output_each) and kind[2] and not kind[1]
    alternative = ""
    if unmasked:
        code = "missing-local-derivative"
        words = "should be zero: what stops them forward does not stop them backward"
        some_stopped = bool(np.any(~there.any(axis=0) & ~used.any(axis=0)))
        alternative = "wrong-local-derivative" if some_stopped else ""  # another mask, or one of two
    code = code or ("wrong-local-derivative" if entrywise else "missing-term")
    words = f"{int(wrong.sum())} of {wrong.size} partial derivatives of the output in {argument} {words}"
    mixed = code == "wrong-axis" and kind == (True, False, True)
    cost = UNMASKED if unmasked and not kind[0] else MIXED if mixed else LAST
    yield Diagnosis(code, (argument,), words, cost, alternative=alternative)


def _of_all_rows(
    argument: str, numerical: NumericalGradient, right: Array, given: Array
) -> Iterator[Diagnosis]:
    """Look for one Jacobian for all rows, the mean or the sum of theirs, where each has its own."""
    rows, *others = {value.shape[:1] for value in (numerical.inputs[argument], *numerical.outputs)}
    if others or len(numerical.outputs) > 1 or rows < (2,):
        return
    count = rows[0]
    blocks = right.reshape(count, len(right) // count, count, -1)
    own = np.einsum("kikj->kij", blocks)
    for name, joint in (("mean", own.mean(axis=0)), ("sum", own.sum(axis=0))):
        if explains(np.kron(np.eye(count), joint), given, right):
            words = f"each row of d{argument} is made with the {name} of all {count} rows' Jacobians, not with its own"
            yield Diagnosis("averaged-batch", (argument,), words, JOINT)


def _right_jacobian(argument: str, numerical: NumericalGradient) -> Array | None:
    """Return the right matrix, a row for each output; None where it is not known or has kinks."""
    found = numerical.jacobians[argument]
    if not isinstance(found, NumericalJacobian) or found.kinks.any():
        return None
    small = found.low.size <= LARGEST_JACOBIAN
    return np.asarray((found.low + found.high) / 2, np.float64) if small else None


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([part.ravel() for part in parts])


def _given_jacobian(argument: str, evidence: Evidence) -> Array | None:
    """Return backward's matrix, or None where it is not linear in the upstream gradient."""
    numerical, sample = evidence.comparisons[0].numerical, evidence.comparisons[0].samples[0]
    ends = np.cumsum([output.size for output in numerical.outputs])
    if ends[-1] > MOST_OUTPUTS:
        return None

    def row(upstream: Array) -> Array:
        parts = zip(np.split(upstream, ends[:-1]), numerical.outputs, strict=True)
        shaped = [part.reshape(output.shape) for part, output in parts]
        return evidence.subject.run_backward(shaped, numerical.exact)[argument].astype(float).ravel()

    try:
        matrix = np.array([row(unit) for unit in np.eye(ends[-1])])
    except (CheckError, KeyError, ValueError):
        return None
    got = np.asarray(sample.got[argument], float).ravel()
    return matrix if matrix.ndim == 2 and close(_joined(sample.upstream) @ matrix, got) else None
