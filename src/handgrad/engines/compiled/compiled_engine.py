"""The compiled engine: a program's lines as native code, a whole epoch at a time.

lines ─program.lowering─► values ─fusion─► loops and products ─loops, matrix_products, ir─► code ─native─► addresses
                                                                      └─ plan: memory, tables of steps ─► batch_loop
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import is_sparse, release
from handgrad.engines.compiled.blas import Blas, find_blas, library_is_chosen
from handgrad.engines.compiled.elementwise import FLOATS
from handgrad.engines.compiled.fused_loop import FusedLoop
from handgrad.engines.compiled.fusion import Step, StepSchedule
from handgrad.engines.compiled.loops import Kernel, KernelWriter
from handgrad.engines.compiled.matrix_products import find_ahead
from handgrad.engines.compiled.plan import Plan
from handgrad.engines.compiled.sparse_rows import SparseRows
from handgrad.engines.compiled.window_loops import WindowLoopWriter
from handgrad.engines.compiled.window_steps import WindowLoop
from handgrad.engines.engine import ONE_ROW, Epoch, MicroBatches, NonFiniteLossError
from handgrad.errors import EngineError, ShapeError
from handgrad.layers import Value
from handgrad.program import Program
from handgrad.program.lowered import UnsupportedLineError
from handgrad.program.lowering import lower
from handgrad.rules import show_shape

Array = NDArray[Any]

SOURCES = {np.dtype(name): kind for name, kind in FLOATS.items()} | {
    np.dtype(f"{sign}int{bits}"): f"i{bits}{' unsigned' if sign else ''}"
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
"""The types of input arrays that are converted row by row; others are converted once, whole."""


class CompiledEngine:
    """Runs programs as native code."""

    def bind(self, program: Program, arrays: Mapping[str, Array]) -> BoundCompiled | MicroBatches:
        """Prepare a program to run on ``arrays``; see `Engine.bind`."""
        if program.micro_batch:
            return MicroBatches(self, program, arrays)
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
        self.arrays = {name: arrays[name] for name in program.shapes}
        for name, shape in program.shapes.items():
            array = arrays[name]
            if array.dtype != program.dtype or not array.flags.c_contiguous or not array.flags.writeable:
                raise EngineError(f"{name} is no writable, contiguous array of {program.dtype}")
            if array.shape != shape:
                raise ShapeError(
                    f"{name} is {show_shape(array.shape)}, the program keeps {show_shape(shape)}"
                )
        self.lowered = lower(program)
        self.outputs = {name: self.lowered.names[name] for name in program.outputs}
        self.checked = tuple(self.outputs[name] for name in ("total", "count") if name in self.outputs)
        self.plans: dict[
            Any, Plan
        ] = {}  # the last two: often that of a full batch, and that of the rows that are left
        self.written: dict[tuple[tuple[str, str], ...], tuple[StepSchedule, dict[Step, Kernel]]] = {}
        try:  # to hear now, and not in the middle of a training, what cannot be done
            self.schedule = self.scheduled()
            row = {v.name: self.given(v, _row(v, program.dtype)) for v in program.inputs}
            self.plan(row, 1).prepare(Epoch(row, np.arange(0), 1))
        except (NotImplementedError, KeyError, AttributeError, StopIteration, RuntimeError) as error:
            raise EngineError(f"this program cannot be compiled: {error!r}") from error
        # the two round differently, which resuming a training reports
        products = "BLAS" if library_is_chosen() else "tiles"
        self.facts = {"engine": "compiled", "blas": blas.name, "threads": thread_limit(blas)}
        self.facts["sequence_products"] = products

    def scheduled(self, sparse: Collection[str] = ()) -> StepSchedule:
        """Return the steps for inputs of which some are sparse."""
        for line in self.program.lines:
            for name in sparse:
                if not line.only_multiplies(name):
                    raise UnsupportedLineError(line, f"{name} is sparse, and is not only multiplied here")
        return StepSchedule(self.lowered, tuple(self.outputs.values()), self.checked, sparse)

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        arrays = {value.name: self.given(value, epoch.arrays[value.name]) for value in self.program.inputs}
        plan = self.plan(arrays, min(epoch.batch_size, max(len(epoch.order), 1)))
        total, count = epoch.total, epoch.count
        for first, last in epoch.between_releases():
            part = replace(epoch.part(first, last, total, count), arrays=arrays)
            try:
                total, count = plan.run(
                    part, progress and partial(_advance, progress, first * epoch.batch_size)
                )
            except NonFiniteLossError as error:
                raise NonFiniteLossError(first + error.batch) from None
            for array in epoch.arrays.values():
                release(array)
        return total, count

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        arrays = {v.name: self.given(v, inputs[v.name]) for v in self.program.inputs}
        rows = len(next(iter(arrays.values()), ONE_ROW))
        rates = np.array([inputs["learning_rate"]]) if "learning_rate" in inputs else np.empty(0)
        step, seed = inputs.get("step", 1), inputs.get("seed", 0)
        plan = self.plan(arrays, max(rows, 1))
        with suppress(NonFiniteLossError):  # the caller asked for the numbers, whatever they are
            plan.run(Epoch(arrays, np.arange(rows), plan.batch_size, rates, step, seed))
        return {name: plan.result(value, rows) for name, value in self.outputs.items()}

    def given(self, value: Value, array: Any) -> Any:
        """Return an input array whose rows are contiguous, in a type that is read row by row, or `SparseRows`."""
        array = array if is_sparse(array) else np.asarray(array)
        if array.shape[1:] != value.shape[1:]:  # native code must not read what is behind a row
            raise ShapeError(
                f"{value.name} is {show_shape(array.shape)}, the program takes {show_shape(value.shape)}"
            )
        if is_sparse(array):
            return SparseRows.of(array, SOURCES, self.program.dtype)
        if array.dtype not in SOURCES or (value.whole and array.dtype.kind == "f"):
            array = np.asarray(array, np.int64 if value.whole else self.program.dtype)
        return np.ascontiguousarray(array)

    def plan(self, arrays: Mapping[str, Any], batch_size: int) -> Plan:
        """Return the native code for inputs of these types, and batches of up to so many rows."""
        sparse = {name: rows.kind(SOURCES) for name, rows in arrays.items() if isinstance(rows, SparseRows)}
        sources = {name: sparse.get(name) or SOURCES[array.dtype] for name, array in arrays.items()}
        threads, types, dtype = thread_limit(self.blas), tuple(sources.items()), self.program.dtype
        key = (batch_size, threads, types)
        if key not in self.plans:
            if types not in self.written:
                schedule = self.scheduled(sparse) if sparse else self.schedule
                kernels: dict[Step, Kernel] = {}
                for step in schedule.steps:
                    if isinstance(step, FusedLoop):
                        writer = KernelWriter(step, schedule.stored, schedule.homes, dtype, sources)
                        kernels[step] = writer.write()
                    elif isinstance(step, WindowLoop):
                        kernels[step] = WindowLoopWriter(step, dtype).write()
                self.written[types] = schedule, kernels
            schedule, kernels = self.written[types]
            ahead = find_ahead(schedule)
            if ahead is not None and sources[ahead.rows.attribute] != FLOATS[dtype]:
                ahead = None  # its rows are converted on the way, or sparse
            while len(self.plans) > 1:
                del self.plans[next(iter(self.plans))]
            self.plans[key] = Plan(
                self.lowered, schedule, kernels, self.arrays, self.blas,
                dtype=dtype, threads=threads, batch_size=batch_size, ahead=ahead, sparse=sparse,
            )  # fmt: skip
        return self.plans[key]


def _advance(progress: Callable[[int], None], before: int, rows: int) -> None:
    progress(before + rows)


def _row(value: Value, dtype: str) -> Array:
    """Return one row as an input usually has it."""
    shape = (1, *(int(size) for size in value.shape[1:]))
    return np.zeros(shape, np.int64 if value.whole else dtype)


def thread_limit(blas: Blas) -> int:
    """Return how many threads may be used: what BLAS may use, and no more than there are processors for us."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(blas.allowed_threads, available))
