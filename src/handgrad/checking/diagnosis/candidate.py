"""A mistake that would explain the numbers, and when a prediction is near enough to be one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from handgrad.checking.subject import Array


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


def nearer(predicted: Array, got: Array, right: Array) -> bool:
    """Whether a prediction comes much nearer to what was given than the right gradient does: it explains a small error."""
    return float(np.abs(predicted - got).max(initial=0)) <= 0.05 * float(np.abs(right - got).max(initial=0))
