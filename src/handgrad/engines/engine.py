"""What an engine is: something that runs a program over batches.

Three promises: every engine agrees with the reference within a stated bound; an engine that cannot run a line
names the line and the reason; the same seed on the same engine gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import MAPPED_BYTES, LazyRows, is_mapped, is_sparse
from handgrad.layers import Value
from handgrad.program import Program

Array = NDArray[Any]

MOST_MICRO_BATCHES = 2**20
"""The most micro-batches of a batch: the numbers that two steps' random draws are made from are so far apart."""

ONE_ROW = np.zeros(1, np.int64)
"""The order of a batch without rows, of an update alone."""

MOST_ROWS, MOST_ELEMENTS = 4096, 2**25
"""Where nothing is learned from rows, so many are computed at a time, or fewer, so that all values have no more elements."""


class NonFiniteLossError(ArithmeticError):
    """The loss of a batch is NaN or infinite; raised before that batch changes a weight.

    Attributes
    ----------
    batch
        Which batch of the epoch, from 0.
    """

    def __init__(self, batch: int) -> None:
        super().__init__(f"the loss of batch {batch} is not finite")
        self.batch = batch


@dataclass(frozen=True)
class Epoch:
    """One pass over rows: the arrays, the order, and what changes from step to step.

    Attributes
    ----------
    arrays
        What comes with the rows, by the program's names: x, t, and w when rows have weights. Any dtype; an
        engine converts each batch. They may be memory-mapped, and x may be sparse, a ``scipy.sparse.csr_array``, where
        the program only multiplies it. An engine may send them to its devices once, for as long as the same mapping
        comes: changed arrays are another mapping.
    order
        Which rows, in which order.
    batch_size
        Rows of a batch; the last one may be shorter.
    learning_rates
        One for each batch; empty when the program has no update.
    first_step
        The number of the first batch's step, counted from 1 over the whole training.
    seed
        Of the random draws.
    total, count
        What the loss of earlier batches has come to; an engine goes on adding from there.
    """

    arrays: Mapping[str, Array]
    order: Array
    batch_size: int = MOST_ROWS
    learning_rates: Array = field(default_factory=lambda: np.empty(0))
    first_step: int = 1
    seed: int = 0
    total: float = 0.0
    count: float = 0.0

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size)

    def part(self, first: int, last: int, total: float, count: float) -> Epoch:
        """Return the batches from ``first`` to before ``last``, where those before have come to (total, count).

        Run one after the other, the parts give the weights and the loss of the whole to the last bit.
        """
        return replace(
            self,
            order=self.order[first * self.batch_size : last * self.batch_size],
            learning_rates=self.learning_rates[first:last],
            first_step=self.first_step + first,
            total=total,
            count=count,
        )

    def lazy_arrays(self) -> dict[str, Any]:
        """Return the arrays, those of mapped files as ``LazyRows``."""
        return {name: LazyRows(array) if is_mapped(array) else array for name, array in self.arrays.items()}

    def between_releases(self) -> Iterator[tuple[int, int]]:
        """Return (first, last) batches, after which an engine that reads mapped files itself releases their pages."""
        mapped = sum(array.nbytes for array in self.arrays.values() if is_mapped(array))
        batches = max(1, MAPPED_BYTES * len(self) // mapped if mapped else len(self))
        return ((first, min(first + batches, len(self))) for first in range(0, len(self), batches))

    def batches(self, program: Program) -> Iterator[dict[str, Any]]:
        """Yield the arguments of each batch: its rows, converted, and its numbers."""
        kinds = {value.name: value for value in program.inputs}
        arrays = self.lazy_arrays()
        for batch in range(len(self)):
            rows = np.asarray(self.order[batch * self.batch_size : (batch + 1) * self.batch_size])
            given: dict[str, Any] = {
                name: convert(arrays[name][rows], value, program.dtype) for name, value in kinds.items()
            }
            numbers: dict[str, float] = {"step": self.first_step + batch, "seed": self.seed}
            if len(self.learning_rates):
                numbers["learning_rate"] = float(self.learning_rates[batch])
            yield given | {name: numbers[name] for name in program.scalars}


def rows_at_a_time(program: Program) -> int:
    """Return how many rows are computed at a time where nothing is learned from them.

    Examples
    --------
    >>> from handgrad import Linear, Network, SelfAttention
    >>> rows_at_a_time(Network(Linear(3, 2)).program())
    4096
    >>> rows_at_a_time(Network(SelfAttention(64, 4), inputs=(512, 64)).program())
    9
    """
    shapes = (line.shape for line in program.lines if line.shape and isinstance(line.shape[0], str))
    sizes = (prod(int(str(size).removesuffix("n") or 1) for size in shape) for shape in shapes)
    return max(1, min(MOST_ROWS, MOST_ELEMENTS // max(1, sum(sizes))))


def convert(array: Array, value: Value, dtype: str) -> Array:
    """Return rows in the type the program computes in; indices and class numbers stay whole."""
    wanted = np.dtype(np.int64) if value.whole else np.dtype(dtype)
    if is_sparse(array):
        return array.astype(wanted)
    return np.ascontiguousarray(array, wanted)


class MicroBatches:
    """A program with micro-batches as two that an engine runs: one for each micro-batch, and the update after them."""

    def __init__(self, engine: Engine, program: Program, arrays: Mapping[str, Array]) -> None:
        self.program = program
        each, update = program.halves()
        self.sums, self.scalars = [arrays[name] for name in each.slots], update.scalars
        self.each, self.update = engine.bind(each, arrays), engine.bind(update, arrays)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What runs it; see `BoundProgram.facts`."""
        return self.each.facts

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        total, count = epoch.total, epoch.count
        for number in range(len(epoch)):
            batch = epoch.part(number, number + 1, total, count)
            try:
                self.accumulate(batch)
                total, count = self.update.epoch(replace(batch, arrays={}, order=ONE_ROW, batch_size=1))
            except NonFiniteLossError:
                self.forget()
                raise NonFiniteLossError(number) from None
            if progress is not None:
                progress(min((number + 1) * epoch.batch_size, len(epoch.order)))
        return total, count

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        arrays = {value.name: inputs[value.name] for value in self.program.inputs}
        order, step = np.arange(len(next(iter(arrays.values())))), inputs.get("step", 1)
        self.accumulate(Epoch(arrays, order, first_step=step, seed=inputs.get("seed", 0)))
        outputs = self.update.run(**{name: inputs[name] for name in self.scalars})
        self.forget()
        return outputs

    def accumulate(self, batch: Epoch) -> None:
        """Run what is before the update, for each micro-batch."""
        draws = batch.first_step * MOST_MICRO_BATCHES
        none = np.empty(0)
        self.each.epoch(
            replace(batch, batch_size=self.program.micro_batch, first_step=draws, learning_rates=none)
        )

    def forget(self) -> None:
        """Let the next batch begin anew."""
        for array in self.sums:
            array[...] = 0


class BoundProgram(Protocol):
    """A program bound to the arrays it keeps: parameters, states and slots, changed in place. For one thread at a time.

    Attributes
    ----------
    facts
        What runs it, for the records of a training: ``engine``, its name in `ENGINES`, and whatever else makes a
        difference.
    program
        Whose lines are run.
    """

    program: Program

    @property
    def facts(self) -> Mapping[str, Any]: ...  # noqa: D102 - an attribute

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch, and return the loss of all rows as (total, count); their ratio is the mean.

        Parameters
        ----------
        epoch
            What to run over.
        progress
            Called with the number of rows done so far, now and then.

        Raises
        ------
        NonFiniteLossError
            At the first batch whose loss is not finite, before it changes a weight.
        """

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once, on the program's inputs and numbers by name, and return its outputs."""


def evaluate(bound: BoundProgram, epoch: Epoch) -> tuple[float, float, Array]:
    """Run a bound `Network.loss_program`: the loss of all rows as (total, count), and their predictions.

    Raises `NonFiniteLossError` at the first batch whose loss is not finite.
    """
    total, count, predictions = 0.0, 0.0, []
    arrays, size, program = epoch.lazy_arrays(), epoch.batch_size, bound.program
    for number in range(len(epoch)):
        rows = epoch.order[number * size : (number + 1) * size]
        try:
            outputs = bound.run(**{value.name: arrays[value.name][rows] for value in program.inputs})
        except FloatingPointError:  # the reference engine's lines stop there
            raise NonFiniteLossError(number) from None
        batch_total, batch_count, prediction = (outputs[name] for name in program.outputs)
        if not np.isfinite(batch_total):
            raise NonFiniteLossError(number)
        total, count = total + float(batch_total), count + float(batch_count)
        predictions.append(prediction)
    return total, count, np.concatenate(predictions)


class Engine(Protocol):
    """Binds programs to arrays."""

    def bind(self, program: Program, arrays: Mapping[str, Array]) -> BoundProgram:
        """Prepare a program to run on ``arrays``: every parameter, state and slot of it, by name."""
