"""Which loss of handgrad's an author's loss is: a factor of it, with the squares of the weights where they count too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from handgrad import rules
from handgrad.adopting.traced_values import ROUNDING, Array, TracedValues
from handgrad.layers import (
    BinaryCrossEntropy,
    HalfSquaredError,
    Huber,
    Loss,
    MeanSquaredError,
    SoftmaxCrossEntropy,
)

ROUNDED = 1e-11  # of the loss: sums in another order
GUARDED = 1e-5  # of the loss: what a tiny number in a logarithm or a quotient makes of it
SAME_FACTOR = 1e-6  # relative: a number that was found by least squares


@dataclass(frozen=True)
class FoundLoss:
    """The loss of the network, and how often it is the author's; targets as handgrad takes them."""

    loss: Loss
    factor: float
    targets: Array
    exact: bool  # whether up to rounding, or up to a tiny number that the author guards a logarithm with


def find_loss(
    outputs: list[Array],
    targets: Sequence[Array],
    losses: Sequence[float],
    weights: Sequence[list[Array]],
    values: TracedValues,
) -> FoundLoss | None:
    """Return the loss of some outputs and targets that gives the author's numbers at every draw, or None.

    ``weights`` are matrices whose squares may count too.
    """
    for kinds, sums in _families(outputs, targets, values.numbers):
        fit = _fit(sums, losses, weights, exact=True)
        exact = fit is not None
        if fit is None and values.guards:
            fit = _fit(sums, losses, weights, exact=False)
        if fit is not None:
            factor, decay = fit
            return _named(kinds, factor, decay, outputs[0].shape, np.asarray(targets[0]), exact=exact)
    return None


Kinds = list[tuple[Loss, float]]
"""Losses that are a factor of one sum over all rows and outputs, each with what it is of that sum."""


def _families(
    outputs: list[Array], targets: Sequence[Array], numbers: Sequence[float]
) -> Iterator[tuple[Kinds, list[float]]]:
    """Yield losses that differ in a factor only, with their sums over all rows at every draw."""
    n, o = outputs[0].shape
    first = np.asarray(targets[0])
    whole = bool(np.array_equal(first, np.round(first)))
    if first.shape == (n,) and whole and first.min() >= 0 and first.max() < o > 1:
        kinds: Kinds = [(SoftmaxCrossEntropy(), 1 / n)]
        yield (
            kinds,
            _sums(
                rules.softmax_cross_entropy.function, outputs, [np.eye(o)[first.astype(int)]] * len(outputs)
            ),
        )
    if first.shape != (n, o):
        return
    kinds = [
        (HalfSquaredError(), 0.5),
        (HalfSquaredError(reduction="mean"), 0.5 / n),
        (MeanSquaredError(), 1 / (n * o)),
    ]
    yield kinds, [2 * each for each in _sums(rules.half_squared_error.function, outputs, targets)]
    if first.min() >= 0 and first.max() <= 1:
        total = [o * each for each in _sums(rules.binary_cross_entropy.function, outputs, targets)]
        yield [(BinaryCrossEntropy(outputs="sum"), 1 / n), (BinaryCrossEntropy(), 1 / (n * o))], total
        if o > 1 and np.allclose(first.sum(axis=1), 1):
            kinds = [(SoftmaxCrossEntropy(targets="probabilities"), 1 / n)]
            yield kinds, _sums(rules.softmax_cross_entropy.function, outputs, targets)
    for delta in (number for number in numbers if number > 0):
        total = [
            o * sum(rules.huber.function(y, t, delta=delta)) for y, t in zip(outputs, targets, strict=True)
        ]
        yield [(Huber(delta, outputs="sum"), 1 / n), (Huber(delta), 1 / (n * o))], total


def _sums(function: object, outputs: list[Array], targets: Sequence[Array]) -> list[float]:
    with np.errstate(all="ignore"):
        return [float(function(y, t).sum()) for y, t in zip(outputs, targets, strict=True)]  # type: ignore[operator]


def _fit(
    sums: Sequence[float], losses: Sequence[float], weights: Sequence[list[Array]], *, exact: bool
) -> tuple[float, float] | None:
    """Return how often a sum is the loss, and how often half the squares of all weights; None where it is not so."""
    precision = ROUNDED if exact else GUARDED
    squares = [[0.5 * float((array * array).sum()) for array in each] for each in weights]
    for columns in ([sums], [sums, *squares]):
        matrix, wanted = np.array(columns).T, np.array(losses)
        if not np.all(np.isfinite(matrix)) or len(wanted) < len(columns) + 2:
            return None
        scale = np.abs(matrix).max(axis=0) + np.finfo(float).tiny
        found = np.linalg.lstsq(matrix / scale, wanted, rcond=None)[0] / scale
        off = float(np.abs(matrix @ found - wanted).max())
        if off <= precision * float(np.abs(wanted).max()):
            decays = found[1:]
            alike = len(decays) == 0 or np.ptp(decays) <= SAME_FACTOR * np.abs(decays).max()
            decay = float(decays.mean()) if len(decays) else 0.0
            if found[0] > 0 and decay >= 0 and alike:
                return _round(float(found[0]), precision), _round(decay, precision)
    return None


def _round(number: float, precision: float) -> float:
    """Return the number of few digits that one found by least squares must have been."""
    short = float(f"{number:{'.6g' if precision < GUARDED else '.4g'}}")
    return short if abs(short - number) <= max(ROUNDING, 2 * precision) * abs(number) else number


def _named(
    kinds: Kinds, whole: float, decay: float, shape: tuple[int, ...], targets: Array, *, exact: bool
) -> FoundLoss:
    """Return the one of some losses that is the author's without a factor, or with the plainest one."""
    precision = ROUNDED if exact else GUARDED
    factors = [_round(whole / part, precision) for _, part in kinds]
    if decay and isinstance(kinds[0][0], HalfSquaredError):  # a sum has no l2
        kinds, factors = kinds[1:], factors[1:]
    plainest = min(
        factors, key=lambda factor: (abs(factor - 1) > SAME_FACTOR, abs(factor - round(factor)), factor)
    )
    loss, factor = kinds[factors.index(plainest)][0], plainest
    if decay:  # a mean of n rows adds l2 / n of the squares
        loss = replace(loss, l2=_round(decay * shape[0] / factor, precision))
    return FoundLoss(loss, factor, targets, exact)
