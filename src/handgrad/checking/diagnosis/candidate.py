"""A mistake that would explain the numbers, and when a prediction is near enough to be one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handgrad.checking.subject import Array

CLOSE = 1e-6  # of the largest entry: a mistake's prediction is that near, or it is another mistake


@dataclass(frozen=True)
class Diagnosis:
    """A mistake that would explain the numbers.

    Attributes
    ----------
    code
        Its name in the vocabulary.
    arguments
        Whose gradients it explains.
    evidence
        In words.
    cost
        How far-fetched it is: the lowest is named first.
    place
        The line of forward where it was made, or "".
    """

    code: str
    arguments: tuple[str, ...]
    evidence: str
    cost: float
    place: str = ""


def agree(predicted: Array, got: Array, scale: float = 0.0) -> bool:
    """Whether a predicted gradient is the one that was given, to within a millionth of the largest entry."""
    if predicted.shape != got.shape:
        return False
    largest = max(float(np.abs(got).max(initial=0)), scale)
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(predicted - got) <= CLOSE * largest + 1e-300))


def nearer(predicted: Array, got: Array, right: Array) -> bool:
    """Whether a prediction comes much nearer to what was given than the right gradient does: it explains a small error."""
    return float(np.abs(predicted - got).max(initial=0)) <= 0.05 * float(np.abs(right - got).max(initial=0))
