"""What a diagnosis works with: backward's numbers and the right ones, at the user's inputs and at fresh ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from handgrad.checking.diagnosis.recorded import record_subject
from handgrad.checking.recording import NotRecordedError, Recording
from handgrad.checking.subject import Array, Subject
from handgrad.checking.verdict import Expectation, Judgement, Sample

CLOSE = 1e-6  # of the largest entry: a mistake's prediction is that near, or it is another mistake


@dataclass(frozen=True)
class Guess:
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


@dataclass(frozen=True)
class Evidence:
    """Backward's numbers beside the right ones.

    Attributes
    ----------
    subject
        The functions.
    expectations, judgements
        At the user's inputs first, then at fresh ones.
    wrong
        The arguments whose gradients are wrong.
    """

    subject: Subject
    expectations: tuple[Expectation, ...]
    judgements: tuple[Judgement, ...]
    wrong: tuple[str, ...]

    @cached_property
    def recording(self) -> Recording | None:
        """Forward as elementary operations, at the user's inputs; None where it cannot be followed."""
        try:
            return record_subject(self.subject, self.expectations[0].exact)
        except NotRecordedError:
            return None

    def samples(self) -> Iterator[tuple[Expectation, Sample]]:
        """Yield every upstream gradient at every inputs."""
        for expected, judgement in zip(self.expectations, self.judgements, strict=True):
            for sample in judgement.samples:
                yield expected, sample

    def pairs(self, argument: str) -> list[tuple[Array, Array]]:
        """Return (got, right) of an argument for every sample."""
        return [(sample.got[argument], sample.middle(argument)) for _, sample in self.samples()]


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
