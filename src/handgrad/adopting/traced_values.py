"""The values that an author's forward computes, at several draws of its parameters: what is looked up in them is recognised.

A layer is not recognised by how it is spelled, but by its values: where handgrad's sigmoid of a value is a value that the
forward computes too, at every draw, the author has written a sigmoid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.checking.forward_trace import ForwardTrace
from handgrad.checking.input_draws import jittered
from handgrad.tolerance import close

Array = NDArray[Any]

DRAWS = 12  # more than a loss with the squares of some weights has unknown factors
SPREADS = (
    3.0,
    1.0,
    0.3,
)  # of the draws, as parts of the values: nearer ones where forward is not finite farther away
ROUNDING = 1e-9  # of the largest entry: what two spellings of one formula differ by
TINY = 1e-4  # a constant below is there against a division by zero


class TracedValues:
    """Every value of a traced forward: as it is, and at several draws of its inputs."""

    def __init__(self, trace: ForwardTrace, inputs: Mapping[str, Array], arguments: Sequence[str]) -> None:
        self.trace = trace
        moved = trace.descendants(trace.inputs.values())
        read = {i for operation in trace.operations if operation.output in moved for i in operation.inputs}
        self.constants = sorted(read - moved)  # with what a script computes of them beforehand
        self.rules: dict[tuple[str, str], Any] = {}  # layers made of parts of this forward, by their lines
        self.draws = _draws(trace, inputs, arguments)
        outputs = (operation.output for operation in trace.operations)
        self.computed = [i for i in outputs if trace.values[i].dtype.kind == "f"]

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers that the forward is written with: a slope, an epsilon."""
        single = (self.trace.values[i] for i in self.constants if np.ndim(self.trace.values[i]) == 0)
        return sorted({float(value) for value in single if np.isfinite(value)})

    @property
    def guards(self) -> bool:
        """Whether the forward is written with a tiny number, as in ``log(p + 1e-12)``."""
        return any(0 < abs(number) <= TINY for number in self.numbers)

    @cached_property
    def _sizes(self) -> tuple[Array, list[int]]:
        """The sums of absolute values at the first draw, sorted, and whose they are: the same in every layout."""
        with np.errstate(all="ignore"):
            sums = np.array([float(np.abs(self.draws[0][i]).sum()) for i in self.computed])
        order = np.argsort(sums, kind="stable")
        return sums[order], [self.computed[k] for k in order]

    def at(self, value: int) -> list[Array]:
        """Return a value at every draw."""
        return [np.asarray(draw[value]) for draw in self.draws]

    def find(self, expected: Sequence[Array]) -> int | None:
        """Return the first computed value that is some rows, or their negative, at every draw; None where there is none.

        The negative is all that there is in ``1 / (1 + np.exp(-x @ W))``.
        """
        sums, owners = self._sizes
        with np.errstate(all="ignore"):
            size = float(np.abs(expected[0]).sum())
        if not np.isfinite(size):
            return None
        margin = 1e-6 * size + 1e-12
        low, high = np.searchsorted(sums, [size - margin, size + margin])
        negative = [-each for each in expected]
        found = (i for i in sorted(owners[low:high]) if self.is_at(i, expected) or self.is_at(i, negative))
        return next(found, None)

    def is_at(self, value: int, expected: Sequence[Array]) -> bool:
        """Whether a value is some rows at every draw, in whatever layout."""
        return all(
            any(close(form, wanted, ROUNDING) for form in as_rows(draw[value], len(wanted)))
            for draw, wanted in zip(self.draws, expected, strict=True)
        )


def _draws(trace: ForwardTrace, inputs: Mapping[str, Array], arguments: Sequence[str]) -> list[list[Any]]:
    """Return the values as they are, and at draws of the inputs at which the outputs are finite."""
    generator = np.random.default_rng(0)
    draws = [trace.replay(inputs)]
    for spread in SPREADS:
        for _ in range(2 * DRAWS):
            moved = jittered(dict(inputs), generator, spread)
            moved |= {n: _apart(moved[n], generator) for n in arguments if np.ptp(moved[n]) == 0}
            values = trace.replay(moved)
            if all(np.all(np.isfinite(values[i])) for i in trace.outputs):
                draws.append(values)
            if len(draws) > DRAWS:
                return draws
    return draws


def _apart(value: Array, generator: np.random.Generator) -> Array:
    """Return other numbers where all are one, as the zeros that biases start with: they would not be seen."""
    return np.asarray(value + generator.uniform(-0.5, 0.5, value.shape))


def as_rows(value: Any, rows: int) -> Iterator[Array]:
    """Yield an array as a matrix of so many rows: as it is, and with the rows in its last axis.

    >>> [each.shape for each in as_rows(np.zeros((5, 2, 3)), 5)]
    [(5, 6)]
    >>> [each.shape for each in as_rows(np.zeros((4, 5)), 5)]
    [(5, 4)]
    >>> [each.shape for each in as_rows(np.zeros((4, 1)), 1)]
    [(1, 4)]
    """
    array = np.asarray(value)
    if rows == 1:
        yield array.reshape(1, -1)
        return
    if array.ndim and array.shape[0] == rows:
        yield array.reshape(rows, -1)
    if array.ndim == 2 and array.shape[-1] == rows:
        yield array.T
