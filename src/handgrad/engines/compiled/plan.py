"""A program made ready to run on batches of up to a given size: its native code, its memory, its tables."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.blas import Blas
from handgrad.engines.compiled.driver import Control, driver_text
from handgrad.engines.compiled.loops import Kernel
from handgrad.engines.compiled.memory import Workspace
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.pool import USUAL, Choice, helpers
from handgrad.engines.compiled.reading import Reader
from handgrad.engines.compiled.scheduling import Loop, Schedule
from handgrad.engines.compiled.single import Ahead, Carried
from handgrad.engines.compiled.table import Table
from handgrad.engines.compiled.values import Value
from handgrad.engines.engine import Epoch, NonFiniteLossError
from handgrad.program import Program

Array = NDArray[Any]


class Plan:
    """A program's native code with its memory.

    Parameters
    ----------
    program, reader, schedule, kernels
        What is computed, in which steps, and each loop's code.
    kept
        The arrays that steps change in place.
    blas
        What multiplies matrices.
    batch_size
        The largest number of rows in a batch.
    threads
        Into how many parts large steps are divided.
    ahead
        A product that can be done ahead where batches have one row.
    """

    def __init__(
        self,
        program: Program,
        reader: Reader,
        schedule: Schedule,
        kernels: Mapping[Loop, Kernel],
        kept: Mapping[str, Array],
        blas: Blas,
        batch_size: int,
        threads: int,
        ahead: Ahead | None,
    ) -> None:
        self.dtype, self.values, self.schedule, self.kernels = program.dtype, reader.values, schedule, kernels
        self.kept, self.blas, self.batch_size, self.threads = kept, blas, batch_size, threads
        self.numbers = {"learning_rate": np.zeros(1), "step": np.zeros(1), "seed": np.zeros(1, np.int64)}
        self.sums = np.zeros(2)
        self.order = np.zeros(batch_size + 1, np.int64)  # a batch's rows, and the next
        self.carried = Carried(ahead if batch_size == 1 else None, self.order, self.dtype)
        stored = schedule.stored.union(*(kernel.stored for kernel in kernels.values()))
        self.workspace = Workspace([v for v in stored if not v.target], schedule, self.dtype, batch_size)
        self.addresses: dict[Any, int] = {**self.workspace.addresses, "sums": self.sums.ctypes.data}
        for value in self.values:
            array = self.own(value)
            if array is not None:
                self.addresses[value] = array.ctypes.data
        self.tables: dict[int, Table] = {}
        self.control = np.zeros(len(Control), np.int64)
        self.choice = Choice()
        self.seconds = USUAL  # for a batch, as the last slice of them had it; at first one is tried alone
        run = native().address(driver_text(native().triple), "run")
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(run)

    def own(self, value: Value) -> Array | None:
        """Return the array of its own that a value lies in, or None when it has none."""
        if value.target:
            return self.kept[value.target]
        match value.operation:
            case "load":
                return self.kept[value.attribute]
            case "scalar":
                return self.numbers[value.attribute]
            case "order":
                return self.order
        return None

    def run(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run an epoch's batches, a short while at a time; its arrays lie as their types say.

        Raises
        ------
        NonFiniteLossError
            At the first batch whose loss is not finite.
        IndexError
            When a row number or an index lies outside: native code must never see one.
        """
        order = self.prepare(epoch)
        rates = np.ascontiguousarray(epoch.learning_rates, float)
        rows = len(order)
        order = np.append(order, -1)
        self.carried.forget()
        whole, rest = self.table(self.batch_size), rows % self.batch_size
        last = self.table(rest) if rest else whole
        self.tables = {self.batch_size: whole, rest: last} if rest else {self.batch_size: whole}
        self.numbers["seed"][0], self.sums[:] = epoch.seed, (epoch.total, epoch.count)
        self.control[:] = 0
        for place, number in (
            (Control.STEPS, whole.steps.ctypes.data), (Control.STEP_COUNT, len(whole.steps)),
            (Control.LAST_STEPS, last.steps.ctypes.data), (Control.LAST_STEP_COUNT, len(last.steps)),
            (Control.BATCH, self.batch_size), (Control.ROWS, rows),
            (Control.ORDER, order.ctypes.data), (Control.ROW_NUMBERS, self.order.ctypes.data),
            (Control.RATES, rates.ctypes.data if len(rates) else 0),
            (Control.RATE, self.numbers["learning_rate"].ctypes.data),
            (Control.STEP, self.numbers["step"].ctypes.data), (Control.FIRST_STEP, epoch.first_step),
        ):  # fmt: skip
            self.control[place] = number
        with self.blas.on_one_thread():
            self.slices(rows, progress)
        return float(self.sums[0]), float(self.sums[1])

    def prepare(self, epoch: Epoch) -> Array:
        """Look at an epoch, make the table that it needs, and return its row numbers."""
        order = self.checked(epoch)
        self.read_from(epoch.arrays)
        self.table(self.batch_size)
        return order

    def checked(self, epoch: Epoch) -> Array:
        """Return the row numbers, after a look that they and all indices are rows of what they are looked up in."""
        order = np.ascontiguousarray(epoch.order, np.int64)
        _check_rows("the order", order, min(map(len, epoch.arrays.values())))
        for value in self.values:
            looked_up = value.operation == "take" and value.inputs[0].operation == "load"
            if looked_up or value.operation == "add_rows_at":
                table = value.inputs[0] if looked_up else value
                name = self.index_of(value).attribute
                _check_rows(name, epoch.arrays[name], table.shape[0].factor)
        if "learning_rate" in {v.attribute for v in self.values if v.operation == "scalar"}:
            batches = -(-len(order) // self.batch_size)
            if len(epoch.learning_rates) < batches:
                raise IndexError(f"{batches} batches have {len(epoch.learning_rates)} learning rates")
        return order

    def index_of(self, value: Value) -> Value:
        """Return the input that a value's rows are looked up by."""
        taken = value.inputs[1].base
        if taken.operation != "take" or taken.inputs[0].operation != "source":
            raise NotImplementedError("an index that is computed")
        return taken.inputs[0]

    def read_from(self, arrays: Mapping[str, Array]) -> None:
        """Take the rows from these arrays."""
        addresses = {v: arrays[v.attribute].ctypes.data for v in self.values if v.operation == "source"}
        if not addresses.items() <= self.addresses.items():
            self.addresses |= addresses
            self.tables.clear()

    def table(self, n: int) -> Table:
        """Return the table of steps for batches of ``n`` rows."""
        if n not in self.tables:
            self.tables[n] = Table(self.schedule, self.kernels, self.addresses, n, self.dtype, self.blas,
                                   self.threads, self.carried)  # fmt: skip
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
            self.seconds = max(seconds / (until - done), 1e-7)
            done = until
            if progress is not None:
                progress(rows_done)

    def slice(self, first: int, last: int) -> int:
        """Run some batches, with help where that is worth it; return the first that stopped, or ``last``."""
        divided = any(table.is_divided for table in self.tables.values())
        help_ = helpers(self.threads - 1).shared() if divided and self.choice.helped else nullcontext(0)
        with help_ as self.control[Control.POOL]:
            return int(self.call(self.control.ctypes.data, first, last))

    def result(self, value: Value, n: int) -> Any:
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
