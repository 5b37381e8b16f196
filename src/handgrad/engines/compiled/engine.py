"""The compiled engine: a program's lines as native code, a whole epoch at a time.

lines ─reading─► values ─scheduling─► loops and products ─loops, ir─► code ─native─► addresses
                                                         └─ table, memory: sizes, places ─► driver
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.blas import Blas, find_blas
from handgrad.engines.compiled.driver import Control, driver_text
from handgrad.engines.compiled.loops import Compiler, Kernel, memory_kind
from handgrad.engines.compiled.memory import aligned, arrange
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.pool import Choice, helpers
from handgrad.engines.compiled.reading import Reader
from handgrad.engines.compiled.scheduling import Loop, Schedule
from handgrad.engines.compiled.table import Table
from handgrad.engines.compiled.values import Value
from handgrad.engines.engine import Epoch, NonFiniteLossError
from handgrad.errors import EngineError
from handgrad.program import Program

Array = NDArray[Any]

SOURCES = {
    "float32": "float", "float64": "double", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8 unsigned", "uint16": "i16 unsigned", "uint32": "i32 unsigned", "uint64": "i64 unsigned",
}  # fmt: skip
"""The types of input arrays that are converted row by row; others are converted once, whole."""

ITEM = {"float": 4, "double": 8, "i64": 8, "i8": 1}


class CompiledEngine:
    """Runs programs as native code."""

    name = "compiled"

    def bind(self, program: Program, arrays: Mapping[str, Array]) -> BoundCompiled:
        """Prepare a program to run on ``arrays``, which its updates change in place.

        Raises
        ------
        UnsupportedLineError
            When a line cannot be compiled: which, and why.
        EngineError
            When no BLAS library is found.
        """
        blas = find_blas()
        if blas is None:
            raise EngineError(
                "no BLAS library was found beside NumPy", fix="pip install numpy from PyPI, or mkl"
            )
        return BoundCompiled(program, arrays, blas)


class BoundCompiled:
    """A program as native code, with the arrays it keeps."""

    def __init__(self, program: Program, arrays: Mapping[str, Array], blas: Blas) -> None:
        self.program, self.blas = program, blas
        self.kept = {name: arrays[name] for name in (*program.parameters, *program.states, *program.slots)}
        for name, array in self.kept.items():
            if array.dtype != program.dtype or not array.flags.c_contiguous or not array.flags.writeable:
                raise EngineError(f"{name} is no writable, contiguous array of {program.dtype}")
        self.reader = Reader(program)
        self.reader.read()
        self.outputs = {name: self.reader.names[name] for name in program.outputs}
        checked = tuple(self.outputs[name] for name in ("total", "count") if name in self.outputs)
        self.schedule = Schedule(
            self.reader.values, frozenset(self.reader.updates), tuple(self.outputs.values()),
            tuple(self.reader.assigned), checked,
        )  # fmt: skip
        self.kernels(
            dict.fromkeys((value.name for value in program.inputs), "i64")
        )  # to hear now what cannot be done
        self.plans: dict[Any, Plan] = {}
        self.facts = {"engine": "compiled", "blas": blas.name, "threads": thread_limit(blas)}

    def kernels(self, sources: dict[str, str]) -> dict[Loop, Kernel]:
        """Write every loop's code, for inputs that lie in memory as numbers of these types."""
        loops = [step for step in self.schedule.steps if isinstance(step, Loop)]
        return {
            loop: Compiler(loop, self.schedule.stored, self.program.dtype, sources).compile()
            for loop in loops
        }

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        arrays = {
            name: self.given(epoch.arrays[name]) for name in (value.name for value in self.program.inputs)
        }
        plan = self.plan(arrays, min(epoch.batch_size, max(len(epoch.order), 1)))
        return plan.run(epoch, arrays, progress)

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        rows = len(inputs[self.program.inputs[0].name])
        arrays = {value.name: self.given(np.asarray(inputs[value.name])) for value in self.program.inputs}
        rates = np.array([inputs["learning_rate"]]) if "learning_rate" in inputs else np.empty(0)
        epoch = Epoch(
            arrays, np.arange(rows), max(rows, 1), rates, inputs.get("step", 1), inputs.get("seed", 0)
        )
        plan = self.plan(arrays, max(rows, 1))
        with suppress(NonFiniteLossError):  # the caller asked for the numbers, whatever they are
            plan.run(epoch, arrays, None)
        return {name: plan.result(value, rows) for name, value in self.outputs.items()}

    def given(self, array: Array) -> Array:
        """Return an input array whose rows lie one behind the other, in a type that is read row by row."""
        if array.dtype.name not in SOURCES or not array.dtype.isnative:
            array = np.asarray(array, self.program.dtype)
        return np.ascontiguousarray(array)

    def plan(self, arrays: Mapping[str, Array], batch_size: int) -> Plan:
        """Return the native code for inputs of these types, and batches of up to so many rows."""
        types = {name: array.dtype.name for name, array in arrays.items()}
        threads = thread_limit(self.blas)
        key = (batch_size, threads, *types.values())
        if key not in self.plans:
            self.plans.clear()  # one at a time: each has memory of its own
            self.plans[key] = Plan(
                self, {name: SOURCES[kind] for name, kind in types.items()}, batch_size, threads
            )
        return self.plans[key]


class Plan:
    """A program's native code with its memory, for batches of up to a given number of rows."""

    def __init__(self, bound: BoundCompiled, sources: dict[str, str], batch_size: int, threads: int) -> None:
        self.bound, self.batch_size, self.threads = bound, batch_size, threads
        self.kernels = bound.kernels(sources)
        stored = bound.schedule.stored.union(*(kernel.stored for kernel in self.kernels.values()))
        self.numbers = {
            "learning_rate": np.zeros(1), "step": np.zeros(1), "seed": np.zeros(1, np.int64)
        }  # fmt: skip
        self.sums = np.zeros(2)
        self.order = np.zeros(batch_size, np.int64)
        self.addresses: dict[Any, int] = {"sums": self.sums.ctypes.data}
        self._place(stored)
        self.tables: dict[int, Table] = {}
        self.control = np.zeros(len(Control), np.int64)
        self.choice = Choice()
        self.call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            native().address(driver_text(native().triple), "run")
        )

    def _place(self, stored: set[Value]) -> None:
        """Find a place for every value that is stored: kept arrays have theirs, the rest share one workspace."""
        bound = self.bound
        blocks = []
        self.item: dict[Value, int] = {}
        for value in stored:
            if value.target:
                self.addresses[value] = bound.kept[value.target].ctypes.data
                continue
            self.item[value] = ITEM[memory_kind(value, bound.program.dtype, {})]
            size = value.size.at(self.batch_size) * self.item[value]
            first = bound.schedule.made[value]
            blocks.append((value, size, first, bound.schedule.last_use.get(value, first)))
        self.offsets, size = arrange(blocks)
        self.workspace = aligned(size)
        for value, offset in self.offsets.items():
            self.addresses[value] = self.workspace.ctypes.data + offset
        for value in bound.reader.values:
            if value.operation == "load":
                self.addresses[value] = bound.kept[value.attribute].ctypes.data
            elif value.operation == "scalar":
                self.addresses[value] = self.numbers[value.attribute].ctypes.data
            elif value.operation == "order":
                self.addresses[value] = self.order.ctypes.data
            elif value.target:
                self.addresses[value] = bound.kept[value.target].ctypes.data

    def table(self, n: int) -> Table:
        if n not in self.tables:
            bound = self.bound
            self.tables[n] = Table(
                bound.schedule, self.kernels, self.addresses, n, bound.program.dtype, bound.blas, self.threads
            )
        return self.tables[n]

    def run(
        self, epoch: Epoch, arrays: Mapping[str, Array], progress: Callable[[int], None] | None
    ) -> tuple[float, float]:
        """Run an epoch's batches, a short while at a time."""
        for value in self.bound.reader.values:
            if value.operation == "source":
                address = arrays[value.attribute].ctypes.data
                if self.addresses.get(value) != address:
                    self.check_indices(value, arrays[value.attribute])
                    self.addresses[value] = address
                    self.tables.clear()
        order = self.checked_order(epoch, arrays)
        rates = np.ascontiguousarray(epoch.learning_rates, float)
        rest = len(order) % self.batch_size
        whole, last = self.table(self.batch_size), self.table(rest) if rest else None
        if last is not None and len(self.tables) > 2:
            self.tables = {self.batch_size: whole, rest: last}
        self.numbers["seed"][0] = epoch.seed
        self.sums[:] = 0
        control = self.control
        control[Control.STEPS], control[Control.STEP_COUNT] = whole.steps.ctypes.data, len(whole.steps)
        if last is not None:
            control[Control.LAST_STEPS], control[Control.LAST_STEP_COUNT] = (
                last.steps.ctypes.data,
                len(last.steps),
            )
        control[Control.BATCH], control[Control.ROWS] = self.batch_size, len(order)
        control[Control.ORDER], control[Control.ROW_NUMBERS] = order.ctypes.data, self.order.ctypes.data
        control[Control.RATES] = rates.ctypes.data if len(rates) else 0
        control[Control.RATE] = self.numbers["learning_rate"].ctypes.data
        control[Control.STEP] = self.numbers["step"].ctypes.data
        control[Control.FIRST_STEP] = epoch.first_step
        with self.bound.blas.on_one_thread():
            self.slices(len(epoch), epoch, progress)
        return float(self.sums[0]), float(self.sums[1])

    def check_indices(self, source: Value, array: Array) -> None:
        """Refuse an index that is no row of the table it is looked up in."""
        for value in self.bound.reader.values:
            if value.operation == "take" and value.inputs[1].base.inputs[:1] == (source,):
                rows = value.inputs[0].shape[0].factor
                if array.size and not 0 <= array.min() <= array.max() < rows:
                    wrong = array.max() if array.min() >= 0 else array.min()
                    raise IndexError(f"{source.attribute} holds {wrong}, and the table has {rows} rows")

    def checked_order(self, epoch: Epoch, arrays: Mapping[str, Array]) -> Array:
        """Return the row numbers; native code must not be given one that is no row."""
        order = np.ascontiguousarray(epoch.order, np.int64)
        rows = min(len(array) for array in arrays.values())
        if len(order) and not 0 <= order.min() <= order.max() < rows:
            raise IndexError(f"row {order.max() if order.min() >= 0 else order.min()} of {rows} rows")
        return order

    def slices(self, batches: int, epoch: Epoch, progress: Callable[[int], None] | None) -> None:
        """Let native code run, and come back now and then."""
        done, count, rows_done = 0, 1, 0
        while done < batches:
            until = min(done + count, batches)
            started = time.perf_counter()
            reached = self.slice(done, until)
            seconds = max(time.perf_counter() - started, 1e-7)
            if reached < until:
                raise NonFiniteLossError(reached)
            rows = min(until * epoch.batch_size, len(epoch.order))
            self.choice.measured(seconds / (rows - rows_done))
            count = max(1, int((until - done) * self.choice.length / seconds))
            done, rows_done = until, rows
            if progress is not None:
                progress(rows)

    def slice(self, first: int, last: int) -> int:
        """Run some batches, with help where that is worth it; return the first that stopped, or ``last``."""
        divided = any((table.steps[:, 3] > 1).any() for table in self.tables.values())
        pool = helpers(self.threads - 1) if divided and self.choice.helped else None
        self.control[Control.POOL] = pool.begin() if pool is not None else 0
        try:
            return int(self.call(self.control.ctypes.data, first, last))
        finally:
            if pool is not None and self.control[Control.POOL]:
                pool.end()

    def result(self, value: Value, n: int) -> Any:
        """Return a copy of what a run computed."""
        shape = tuple(size.at(n) for size in value.shape)
        base = value.base
        if base.operation in ("constant", "size"):
            return base.attribute if base.operation == "constant" else base.attribute.at(n)
        if base.target or base.operation == "load":
            return self.bound.kept[base.target or base.attribute].copy().reshape(shape)
        kinds: dict[str, type] = {"single": np.float32, "int": np.int64, "bool": np.bool_, "weak": np.float64}
        dtype = np.dtype(kinds.get(base.type, self.bound.program.dtype))
        start = self.offsets[base]
        held = self.workspace[start : start + base.size.at(n) * dtype.itemsize].view(dtype)
        return held.copy().reshape(shape) if shape else dtype.type(held[0])


def thread_limit(blas: Blas) -> int:
    """Return how many threads may be used: what BLAS may use, and no more than there are processors for us."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(blas.thread_count, available))
