"""A program made ready to run on batches of up to a given size: its native code, its memory, its tables of steps."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.batch_loop import SLICE_SECONDS, Choice, Control, driver_text, helpers
from handgrad.engines.compiled.blas import Blas
from handgrad.engines.compiled.elementwise import FLOATS
from handgrad.engines.compiled.fusion import Step, StepSchedule
from handgrad.engines.compiled.loops import Kernel
from handgrad.engines.compiled.matrix_products import Ahead, Carried
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.sparse_rows import SparseRows
from handgrad.engines.compiled.step_table import StepTable
from handgrad.engines.compiled.window_steps import WindowProduct
from handgrad.engines.engine import Epoch, NonFiniteLossError
from handgrad.program.lowered import Lowered, LoweredValue

Array = NDArray[Any]

SHORTEST = 1e-7
"""The least time that a batch is taken to need, in seconds: a clock may show none."""

ALIGNMENT = 64
"""The length of a cache line and of the widest register, in bytes."""

TYPES = {"single": "float32", "int": "int64", "bool": "bool", "weak": "float64"}
"""The dtype of a value in memory, by its type; others have the program's."""


class Plan:
    """A program's native code, bound to memory for batches of up to ``batch_size`` rows."""

    def __init__(
        self,
        lowered: Lowered,
        schedule: StepSchedule,
        kernels: Mapping[Step, Kernel],
        arrays: Mapping[str, Array],
        blas: Blas,
        *,
        dtype: str,
        threads: int,
        batch_size: int,
        ahead: Ahead | None,
        sparse: Mapping[str, str],
    ) -> None:
        self.schedule, self.kernels, self.blas = schedule, kernels, blas
        self.kind, self.threads, self.batch_size = FLOATS[dtype], threads, batch_size
        self.sums = np.zeros(2)
        self.order = np.zeros(batch_size + 1, np.int64)  # a batch's rows, and the next
        self.carried = Carried(ahead if batch_size == 1 else None, self.order, dtype)
        stored = schedule.stored.union(*(kernel.stored for kernel in kernels.values()))
        computed = [value for value in stored if not value.target and value not in schedule.homes]
        self.memory = allocate(computed, schedule, dtype, batch_size)
        self.sources = [value for value in lowered.values if value.operation == "source"]
        self.sparse = {v: sparse[v.attribute] for v in self.sources if v.attribute in sparse}
        self.memory |= {value: np.zeros(len(fields(SparseRows)), np.int64) for value in self.sparse}
        self.numbers = {"learning_rate": np.zeros(1), "step": np.zeros(1), "seed": np.zeros(1, np.int64)}
        for value in lowered.values:
            if value.target or value.operation == "load":
                self.memory[value] = arrays[value.target or value.attribute]
            elif value.operation == "filled" and value.attribute in self.memory:
                self.memory[value] = self.memory[value.attribute]
            elif value.operation == "table":
                self.memory[value] = value.attribute
            elif value.operation == "scalar":
                self.memory[value] = self.numbers[value.attribute]
            elif value.operation == "order":
                self.memory[value] = self.order
        self.addresses = {value: array.ctypes.data for value, array in self.memory.items()}
        products = (step for step in schedule.steps if isinstance(step, WindowProduct))
        self.copies = np.zeros(
            threads * max((step.contractions.memory for step in products), default=0), dtype
        )
        self.looked_up = list(_looked_up(lowered))
        self.has_rate = "learning_rate" in lowered.names
        self.tables: dict[int, StepTable] = {}
        # what the tables are made for: the addresses of the inputs, and the rows of a last batch
        self.prepared: tuple[int, ...] = ()
        self.control = np.zeros(len(Control), np.int64)
        self.control[Control.ROW_NUMBERS] = self.order.ctypes.data
        self.control[Control.RATE] = self.numbers["learning_rate"].ctypes.data
        self.control[Control.STEP] = self.numbers["step"].ctypes.data
        self.control[Control.BATCH] = batch_size
        self.choice = Choice()
        self.seconds = (
            SLICE_SECONDS  # for a batch, as the last slice of them had it; at first one is tried alone
        )
        self.loop = native().address(driver_text(native().triple), "run")
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            self.loop
        )

    def run(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run an epoch's batches, a short while at a time; `IndexError` when a row number or an index lies outside."""
        order, rates = self.prepare(epoch), np.ascontiguousarray(epoch.learning_rates, float)
        self.carried.forget()
        self.numbers["seed"][0], self.sums[:] = epoch.seed, (epoch.total, epoch.count)
        self.control[Control.ROWS], self.control[Control.ORDER] = len(epoch.order), order.ctypes.data
        self.control[Control.RATES] = rates.ctypes.data if self.has_rate else 0
        self.control[Control.FIRST_STEP] = epoch.first_step
        with self.blas.on_one_thread():
            self.slices(len(epoch.order), progress)
        return float(self.sums[0]), float(self.sums[1])

    def prepare(self, epoch: Epoch) -> Array:
        """Check an epoch, make the tables that it needs, and return its row numbers, with -1 behind the last."""
        order = np.empty(len(epoch.order) + 1, np.int64)
        order[:-1], order[-1] = epoch.order, -1
        _check_rows("the order", order[:-1], min(map(len, epoch.arrays.values()), default=len(order)))
        for name, rows in self.looked_up:
            _check_rows(name, epoch.arrays[name], rows)
        batches = -(-len(epoch.order) // self.batch_size)
        if self.has_rate and len(epoch.learning_rates) < batches:
            raise IndexError(f"{batches} batches have {len(epoch.learning_rates)} learning rates")
        given: dict[LoweredValue, Any] = {value: epoch.arrays[value.attribute] for value in self.sources}
        for value in self.sparse:
            self.memory[value][:] = given.pop(value).addresses
        addresses = {value: array.ctypes.data for value, array in given.items()}
        prepared = (*addresses.values(), len(epoch.order) % self.batch_size)
        if self.prepared != prepared:  # mostly the arrays are those of the epoch before
            self.prepared = ()  # an interruption meanwhile leaves nothing that seems made
            self.make_tables(addresses, prepared[-1])
            self.prepared = prepared
        return order

    def make_tables(self, addresses: Mapping[LoweredValue, int], rest: int) -> None:
        """Make the tables for whole batches and for a last one of ``rest`` rows, from inputs at these addresses."""
        if not addresses.items() <= self.addresses.items():
            self.tables.clear()
            self.addresses |= addresses
        sizes = self.batch_size, rest or self.batch_size
        self.tables = {n: self.tables.get(n) or StepTable(self, n) for n in dict.fromkeys(sizes)}
        self.is_divided = any(table.is_divided for table in self.tables.values())
        whole, last = (self.tables[n].steps for n in sizes)
        self.control[Control.STEPS], self.control[Control.STEP_COUNT] = whole.ctypes.data, len(whole)
        self.control[Control.LAST_STEPS], self.control[Control.LAST_STEP_COUNT] = last.ctypes.data, len(last)

    def slices(self, rows: int, progress: Callable[[int], None] | None) -> None:
        """Let native code run, and come back now and then: for Ctrl-C, for progress, to think about threads."""
        batches, done = -(-rows // self.batch_size), 0
        while done < batches:
            until = min(done + max(1, int(self.choice.length / self.seconds)), batches)
            started = time.perf_counter()
            is_helped = self.is_divided and self.choice.helped
            help_given = helpers(self.threads - 1).shared() if is_helped else nullcontext(0)
            with help_given as self.control[Control.POOL]:
                reached = int(self.call(self.control.ctypes.data, done, until))
            seconds = time.perf_counter() - started
            if reached < until:
                raise NonFiniteLossError(reached)
            rows_done = min(until * self.batch_size, rows)
            self.choice.measured(seconds, rows_done - done * self.batch_size)
            self.seconds = max(seconds / (until - done), SHORTEST)
            done = until
            if progress is not None:
                progress(rows_done)

    def result(self, value: LoweredValue, n: int) -> Any:
        """Return a copy of what a run on ``n`` rows computed."""
        shape, view = tuple(size.at(n) for size in value.shape), value.view
        base = view.base
        if base.operation in ("constant", "size"):
            return base.attribute.at(n) if base.operation == "size" else base.attribute
        numbers = self.memory[base].reshape(-1)[view.offset.at(n) : base.size.at(n)]
        strides = tuple(stride.at(n) * numbers.itemsize for stride in view.strides)
        return np.lib.stride_tricks.as_strided(numbers, shape, strides).copy() if shape else numbers[0]


def _looked_up(lowered: Lowered) -> Iterator[tuple[str, int]]:
    """Yield the inputs that rows of a table are looked up by, and how many rows that has."""
    for value in lowered.values:
        reads = value.operation == "take" and value.inputs[0].operation == "load"
        if reads or value.operation == "add_rows_at":
            taken = value.inputs[1].base
            if taken.operation != "take":
                raise NotImplementedError("an index that is computed")
            table = value.inputs[0] if reads else value
            yield taken.inputs[0].attribute, table.shape[0].factor


def _check_rows(name: str, numbers: Array, rows: int) -> None:
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < rows:
        wrong = numbers.max() if numbers.min() >= 0 else numbers.min()
        raise IndexError(f"{name} holds {wrong}, and there are {rows} rows")


def allocate(
    values: Iterable[LoweredValue], schedule: StepSchedule, dtype: str, batch_size: int
) -> dict[LoweredValue, Array]:
    """Return an array for each value, in one workspace: values never needed together share a place."""
    types = {value: np.dtype(TYPES.get(value.type, dtype)) for value in values}
    bytes_of = {value: value.size.at(batch_size) * kind.itemsize for value, kind in types.items()}
    offsets, total = arrange(
        (value, size, schedule.begun[value], schedule.last_use.get(value, schedule.made[value]))
        for value, size in bytes_of.items()
    )
    room = np.zeros(total + ALIGNMENT, np.uint8)
    room = room[-room.ctypes.data % ALIGNMENT :]
    return {v: room[start : start + bytes_of[v]].view(types[v]) for v, start in offsets.items()}


def arrange(blocks: Iterable[tuple[Any, int, int, int]]) -> tuple[dict[Any, int], int]:
    """Return where each block starts, and how many bytes they need together.

    A block is its key, its size in bytes, and the first and the last step in which it is needed.

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
