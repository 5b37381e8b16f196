"""The table of steps for one size of batch: every address and number that native code is called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.batch_loop import STEP_SIZE, check_text
from handgrad.engines.compiled.blas import Blas
from handgrad.engines.compiled.fusion import FusedLoop
from handgrad.engines.compiled.ir import LANES
from handgrad.engines.compiled.loops import FLOATS, Kernel
from handgrad.engines.compiled.matrix_products import Carried, product_text, row_product_text, row_update_text
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.scheduling import Check, Product, StepSchedule
from handgrad.program.lowered import Extent, LoweredValue

Array = NDArray[Any]

MIN_FLOPS_PER_CHUNK = 2e6
"""A product is divided when each chunk has more floating-point operations than this, …"""

MIN_ELEMENTS_PER_CHUNK = 12_288
"""… a loop when each chunk has more elements. Both are calibrated by `benchmarks/threads.py`."""

PRODUCT_UNIT = 16
"""Chunks of a product are multiples of so many rows or columns: what BLAS holds in registers at a time."""


@dataclass(frozen=True)
class Routine:
    """A program as native code, before addresses and the number of rows are known."""

    values: tuple[LoweredValue, ...]
    schedule: StepSchedule
    kernels: Mapping[FusedLoop, Kernel]
    dtype: str
    blas: Blas
    threads: int


class StepTable:
    """The steps of a routine for batches of ``n`` rows.

    ``addresses`` has each parameter, state, slot, input array, number of the step and stored value.
    """

    def __init__(
        self, routine: Routine, addresses: Mapping[LoweredValue, int], sums: Array, n: int, carried: Carried
    ) -> None:
        self.addresses, self.sums, self.n, self.carried = addresses, sums, n, carried
        self.blas, self.threads, self.kind = routine.blas, routine.threads, FLOATS[routine.dtype]
        self.numbers: dict[str, Array] = {}  # those that are in memory because loops read them there
        self.arguments: list[Array] = []
        self.records: list[tuple[int, int, int, int, int]] = []
        for step in routine.schedule.steps:
            match step:
                case FusedLoop():
                    self.add_loop(step, routine.kernels[step])
                case Product():
                    self.add_product(step)
                case Check():
                    self.add_check(step)
        self.steps = np.array(self.records, np.int64).reshape(-1, STEP_SIZE)

    @property
    def is_divided(self) -> bool:
        """Whether any step has chunks that can be done at the same time."""
        return any(chunks > 1 for _, _, _, chunks, _ in self.records)

    def add(self, text: str, arguments: list[int], extent: int, chunks: int = 1, unit: int = 1) -> None:
        """Add a step, divided into up to so many chunks, whose length is a multiple of ``unit``."""
        held = np.array(arguments, np.int64)
        self.arguments.append(held)
        chunks, length = self.divided(extent, chunks, unit)
        self.records.append((native().address(text), held.ctypes.data, extent, chunks, length))

    def divided(self, extent: int, chunks: int, unit: int) -> tuple[int, int]:
        """Return how many chunks there are and how long each is."""
        if chunks <= 1:
            return 1, extent
        length = -(-extent // (chunks * unit)) * unit
        return -(-extent // length), length

    def address(self, value: LoweredValue) -> int:
        """Return the address of a value; numbers that follow from the size of the batch are put somewhere now."""
        if value in self.addresses:
            return self.addresses[value]
        is_constant = value.operation == "constant"
        return self.number(value.attribute if is_constant else float(value.attribute.at(self.n)))

    def number(self, number: float) -> int:
        exact = float(number).hex()  # 0.0 and -0.0 are two numbers
        array = self.numbers.setdefault(exact, np.array([number], float))
        return array.ctypes.data

    def add_loop(self, loop: FusedLoop, kernel: Kernel) -> None:
        rows, columns = loop.rows.at(self.n), loop.columns.at(self.n)
        operands = (o.at(self.n) if isinstance(o, Extent) else self.address(o) for o in kernel.operands)
        by_rows = loop.direction == "rows"
        extent, unit = (rows, 1) if by_rows else (columns, LANES[self.kind])
        chunks = min(self.threads, rows * columns // MIN_ELEMENTS_PER_CHUNK, extent)
        self.add(kernel.text, [rows, columns, *operands], extent, chunks * (loop.direction != "not"), unit)

    def add_product(self, step: Product) -> None:
        left, right = step.value.inputs
        (a, a_transposed), (b, b_transposed) = left.matrix, right.matrix
        k, n = (left.shape[-1].at(self.n), right.shape[1].at(self.n) if len(right.shape) > 1 else 1)
        m = step.value.size.at(self.n) // n
        target = step.value if step.target is None else step.target.inputs[0]
        scale = self.number(1.0) if step.scale is None else self.address(step.scale)
        at_a, at_b, at_c, sign = self.address(a), self.address(b), self.address(target), int(step.sign)
        row_product = m == 1 and step.target is None and not b_transposed
        row_update = k == 1 and step.target is not None
        # by columns all of A is packed twice; that should be the smaller
        by_columns = n >= m or row_product or row_update
        if row_product:
            text, arguments = row_product_text(self.kind), [at_b, k, n, at_a, at_c]
            arguments += self.carried.for_product(step)
        elif row_update:
            text, arguments = row_update_text(self.kind), [at_c, m, n, at_a, at_b, scale, sign]
            arguments += self.carried.for_update(step, self.addresses)
        else:
            text = product_text(self.kind, self.blas.integer)
            name = "sgemm" if self.kind == "float" else "dgemm"
            function = self.blas.function(name, m * n * k, b_transposed)
            lda, ldb = m if a_transposed else k, k if b_transposed else n
            arguments = [function, a_transposed, b_transposed, m, n, k, scale, sign, step.target is not None]
            arguments += [at_a, lda, at_b, ldb, at_c, n, by_columns]
        extent = n if by_columns else m
        chunks = min(self.threads, int(2 * m * n * k / MIN_FLOPS_PER_CHUNK), extent // PRODUCT_UNIT)
        self.add(text, arguments, extent, chunks, PRODUCT_UNIT)

    def add_check(self, step: Check) -> None:
        values = [value.base for value in step.reads]
        kinds = [self.kind if value.type == "float" else "double" for value in values]
        self.add(check_text(*kinds), [*map(self.address, values), self.sums.ctypes.data], 1)
