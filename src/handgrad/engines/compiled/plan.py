"""A program made ready to run on batches of up to a given size: its native code, its memory, its tables."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.batch_loop import Control, driver_text
from handgrad.engines.compiled.matrix_products import Ahead, Carried
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.scheduling import StepSchedule
from handgrad.engines.compiled.step_table import Routine, StepTable
from handgrad.engines.compiled.thread_pool import USUAL, Choice, helpers
from handgrad.engines.engine import Epoch, NonFiniteLossError
from handgrad.program.lowered import LoweredValue

Array = NDArray[Any]

SHORTEST = 1e-7
"""The least time that a batch is taken to need, in seconds: a clock may show none."""

ALIGNMENT = 64
"""The length of a cache line and of the widest register, in bytes."""


class Plan:
    """A program's native code with its memory.

    ``arrays`` are those that steps change in place, ``batch_size`` the largest number of rows in a batch, ``ahead`` a
    product that can be done ahead where batches have one row.
    """

    def __init__(
        self, routine: Routine, arrays: Mapping[str, Array], batch_size: int, ahead: Ahead | None
    ) -> None:
        self.routine, self.arrays, self.batch_size = routine, arrays, batch_size
        self.numbers = {"learning_rate": np.zeros(1), "step": np.zeros(1), "seed": np.zeros(1, np.int64)}
        self.sums = np.zeros(2)
        self.order = np.zeros(batch_size + 1, np.int64)  # a batch's rows, and the next
        self.carried = Carried(ahead if batch_size == 1 else None, self.order, routine.dtype)
        stored = routine.schedule.stored.union(*(kernel.stored for kernel in routine.kernels.values()))
        computed = [value for value in stored if not value.target]
        self.workspace = Workspace(computed, routine.schedule, routine.dtype, batch_size)
        self.addresses = dict(self.workspace.addresses)
        for value in routine.values:
            array = self.own(value)
            if array is not None:
                self.addresses[value] = array.ctypes.data
        self.sources = [value for value in routine.values if value.operation == "source"]
        self.looked_up = list(self.find_looked_up())
        self.has_rate = any(v.attribute == "learning_rate" for v in routine.values if v.operation == "scalar")
        self.tables: dict[int, StepTable] = {}
        # what the tables are made for: where the inputs lie, and the rows of a last batch
        self.prepared: tuple[int, ...] = ()
        self.control = np.zeros(len(Control), np.int64)
        self.control[Control.ROW_NUMBERS] = self.order.ctypes.data
        self.control[Control.RATE] = self.numbers["learning_rate"].ctypes.data
        self.control[Control.STEP] = self.numbers["step"].ctypes.data
        self.control[Control.BATCH] = batch_size
        self.choice = Choice()
        self.seconds = USUAL  # for a batch, as the last slice of them had it; at first one is tried alone
        run = native().address(driver_text(native().triple), "run")
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(run)

    def own(self, value: LoweredValue) -> Array | None:
        """Return the array of its own that holds a value, or None when it has none."""
        if value.target:
            return self.arrays[value.target]
        match value.operation:
            case "load":
                return self.arrays[value.attribute]
            case "scalar":
                return self.numbers[value.attribute]
            case "order":
                return self.order
        return None

    def run(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run an epoch's batches, a short while at a time.

        Raises
        ------
        NonFiniteLossError
            At the first batch whose loss is not finite.
        IndexError
            When a row number or an index lies outside: native code must never see one.
        """
        order, rates = self.prepare(epoch), np.ascontiguousarray(epoch.learning_rates, float)
        self.carried.forget()
        self.numbers["seed"][0], self.sums[:] = epoch.seed, (epoch.total, epoch.count)
        self.control[Control.ROWS], self.control[Control.ORDER] = len(epoch.order), order.ctypes.data
        self.control[Control.RATES] = rates.ctypes.data if self.has_rate else 0
        self.control[Control.FIRST_STEP] = epoch.first_step
        with self.routine.blas.on_one_thread():
            self.slices(len(epoch.order), progress)
        return float(self.sums[0]), float(self.sums[1])

    def prepare(self, epoch: Epoch) -> Array:
        """Look at an epoch, make the tables that it needs, and return its row numbers, with -1 behind the last."""
        order = self.checked(epoch)
        addresses = {value: epoch.arrays[value.attribute].ctypes.data for value in self.sources}
        prepared = (*addresses.values(), len(epoch.order) % self.batch_size)
        if self.prepared != prepared:  # mostly the arrays are those of the epoch before
            self.prepared = ()  # an interruption meanwhile leaves nothing that seems made
            self.make_tables(addresses, prepared[-1])
            self.prepared = prepared
        return order

    def checked(self, epoch: Epoch) -> Array:
        """Return the row numbers, after a look that they and all indices are rows of what they are looked up in."""
        order = np.empty(len(epoch.order) + 1, np.int64)
        order[:-1], order[-1] = epoch.order, -1
        _check_rows("the order", order[:-1], min(map(len, epoch.arrays.values())))
        for name, rows in self.looked_up:
            _check_rows(name, epoch.arrays[name], rows)
        batches = -(-len(epoch.order) // self.batch_size)
        if self.has_rate and len(epoch.learning_rates) < batches:
            raise IndexError(f"{batches} batches have {len(epoch.learning_rates)} learning rates")
        return order

    def find_looked_up(self) -> Iterator[tuple[str, int]]:
        """Yield the inputs that rows of a table are looked up by, and how many rows that has."""
        for value in self.routine.values:
            reads = value.operation == "take" and value.inputs[0].operation == "load"
            if reads or value.operation == "add_rows_at":
                taken = value.inputs[1].base
                if taken.operation != "take":
                    raise NotImplementedError("an index that is computed")
                table = value.inputs[0] if reads else value
                yield taken.inputs[0].attribute, table.shape[0].factor

    def make_tables(self, addresses: Mapping[LoweredValue, int], rest: int) -> None:
        """Make the tables of steps for whole batches and for a last one of ``rest`` rows, from inputs at these addresses."""
        if not addresses.items() <= self.addresses.items():
            self.tables.clear()
            self.addresses |= addresses
        whole = self.table(self.batch_size)
        last = self.table(rest) if rest else whole
        self.tables = {whole.n: whole, last.n: last}
        self.is_divided = whole.is_divided or last.is_divided
        for table, (place, count) in (
            (whole, (Control.STEPS, Control.STEP_COUNT)), (last, (Control.LAST_STEPS, Control.LAST_STEP_COUNT))
        ):  # fmt: skip
            self.control[place], self.control[count] = table.steps.ctypes.data, len(table.steps)

    def table(self, n: int) -> StepTable:
        """Return the table of steps for batches of ``n`` rows."""
        if n not in self.tables:
            self.tables[n] = StepTable(self.routine, self.addresses, self.sums, n, self.carried)
        return self.tables[n]

    def slices(self, rows: int, progress: Callable[[int], None] | None) -> None:
        """Let native code run, and come back now and then: for Ctrl-C, for progress, to think about threads."""
        batches, done = -(-rows // self.batch_size), 0
        while done < batches:
            until = min(done + max(1, int(self.choice.length / self.seconds)), batches)
            started = time.perf_counter()
            reached = self.slice(done, until)
            seconds = time.perf_counter() - started
            if reached < until:
                raise NonFiniteLossError(reached)
            rows_done = min(until * self.batch_size, rows)
            self.choice.measured(seconds, rows_done - done * self.batch_size)
            self.seconds = max(seconds / (until - done), SHORTEST)
            done = until
            if progress is not None:
                progress(rows_done)

    def slice(self, first: int, last: int) -> int:
        """Run some batches, with help where that is worth it; return the first that stopped, or ``last``."""
        is_helped = self.is_divided and self.choice.helped
        help_given = helpers(self.routine.threads - 1).shared() if is_helped else nullcontext(0)
        with help_given as self.control[Control.POOL]:
            return int(self.call(self.control.ctypes.data, first, last))

    def result(self, value: LoweredValue, n: int) -> Any:
        """Return a copy of what a run on ``n`` rows computed."""
        shape, base = tuple(size.at(n) for size in value.shape), value.base
        if base.operation == "constant":
            return base.attribute
        if base.operation == "size":
            return base.attribute.at(n)
        own = self.own(base)
        held = own if own is not None else self.workspace.held(base, n)
        return held.reshape(shape).copy() if shape else held.reshape(-1)[0]


def _check_rows(name: str, numbers: Array, rows: int) -> None:
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < rows:
        wrong = numbers.max() if numbers.min() >= 0 else numbers.min()
        raise IndexError(f"{name} holds {wrong}, and there are {rows} rows")


class Workspace:
    """One piece of memory for all that is computed and read again; values never needed together share a place."""

    def __init__(
        self, values: Iterable[LoweredValue], schedule: StepSchedule, dtype: str, batch_size: int
    ) -> None:
        self.types = {value: _type(value, dtype) for value in values}
        blocks = []
        for value, kind in self.types.items():
            made = schedule.made[value]
            size = value.size.at(batch_size) * kind.itemsize
            blocks.append((value, size, made, schedule.last_use.get(value, made)))
        self.offsets, size = arrange(blocks)
        self.memory = aligned(size)
        start: int = self.memory.ctypes.data
        self.addresses = {value: start + offset for value, offset in self.offsets.items()}

    def held(self, value: LoweredValue, n: int) -> NDArray[Any]:
        """Return the numbers of a value for ``n`` rows, in memory."""
        start, kind = self.offsets[value], self.types[value]
        return self.memory[start : start + value.size.at(n) * kind.itemsize].view(kind)


def _type(value: LoweredValue, dtype: str) -> np.dtype[Any]:
    kinds: dict[str, type] = {"single": np.float32, "int": np.int64, "bool": np.bool_, "weak": np.float64}
    return np.dtype(kinds.get(value.type, dtype))


def aligned(size: int) -> NDArray[np.uint8]:
    """Return bytes that start at a multiple of 64, set to zero."""
    room = np.zeros(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size]


def arrange(blocks: Iterable[tuple[Any, int, int, int]]) -> tuple[dict[Any, int], int]:
    """Return where each block starts, and how many bytes they need together.

    Parameters
    ----------
    blocks
        For each its key, its size in bytes, and the first and the last step in which it is needed.

    Examples
    --------
    >>> arrange([("a", 64, 0, 1), ("b", 64, 1, 2), ("c", 64, 2, 3)])
    ({'a': 0, 'b': 64, 'c': 0}, 128)
    """
    placed: list[tuple[int, int, int, int]] = []
    offsets: dict[Any, int] = {}
    for key, size, first, last in sorted(blocks, key=lambda block: -block[1]):
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        together = sorted(
            (start, end) for start, end, since, until in placed if since <= last and first <= until
        )
        start = 0
        for taken, end in together:
            if start + size <= taken:
                break
            start = max(start, end)
        offsets[key] = start
        placed.append((start, start + size, first, last))
    return offsets, max((end for _, end, _, _ in placed), default=0)
