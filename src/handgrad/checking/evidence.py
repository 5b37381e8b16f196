"""What a repair and a diagnosis work with: backward's numbers and the right ones, at the user's inputs and at fresh ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from handgrad.checking.forward_trace import ForwardTrace, UntraceableError
from handgrad.checking.judging.reference import trace_subject
from handgrad.checking.judging.verdict import Expectation, Judgement, Sample
from handgrad.checking.subject import Array, Subject


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
    def recording(self) -> ForwardTrace | None:
        """Forward as elementary operations, at the user's inputs; None where it cannot be followed."""
        try:
            return trace_subject(self.subject, self.expectations[0].exact)
        except UntraceableError:
            return None

    def samples(self) -> Iterator[tuple[Expectation, Sample]]:
        """Yield every upstream gradient at every inputs."""
        for expected, judgement in zip(self.expectations, self.judgements, strict=True):
            for sample in judgement.samples:
                yield expected, sample

    def pairs(self, argument: str) -> list[tuple[Array, Array]]:
        """Return (got, right) of an argument for every sample."""
        return [(sample.got[argument], sample.middle(argument)) for _, sample in self.samples()]
