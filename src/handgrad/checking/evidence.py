"""What a repair and a diagnosis work with: backward's numbers and the right ones, at the user's inputs and at fresh ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from handgrad.checking.forward_trace import ForwardTrace, UntraceableError
from handgrad.checking.numerical.comparison import Comparison, GradientSample
from handgrad.checking.numerical.reference import trace_subject
from handgrad.checking.subject import Array, Subject


@dataclass(frozen=True)
class Evidence:
    """Backward's numbers beside the right ones.

    Attributes
    ----------
    subject
        The functions.
    comparisons
        At the user's inputs first, then at fresh ones.
    wrong
        The arguments whose gradients are wrong.
    """

    subject: Subject
    comparisons: tuple[Comparison, ...]
    wrong: tuple[str, ...]

    @cached_property
    def recording(self) -> ForwardTrace | None:
        """Forward as elementary operations, at the user's inputs; None where it cannot be followed."""
        try:
            return trace_subject(self.subject, self.comparisons[0].numerical.exact)
        except UntraceableError:
            return None

    def samples(self) -> Iterator[GradientSample]:
        """Yield every upstream gradient at every inputs."""
        for comparison in self.comparisons:
            yield from comparison.samples

    def pairs(self, argument: str) -> list[tuple[Array, Array]]:
        """Return (got, right) of an argument for every sample."""
        return [(sample.got[argument], sample.expected(argument)) for sample in self.samples()]
