"""The table of steps for one size of batch: every address and number that native code is called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.blas import Blas
from handgrad.engines.compiled.driver import STEP_SIZE, check_text
from handgrad.engines.compiled.fusion import FusedLoop
from handgrad.engines.compiled.ir import LANES
from handgrad.engines.compiled.loops import FLOATS, Kernel
from handgrad.engines.compiled.matrix_products import Carried, product_text, row_product_text, row_update_text
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.scheduling import Check, Product, StepSchedule
from handgrad.program.lowered import Extent, LoweredValue

Array = NDArray[Any]

FLOPS_OF_A_PART = 2e6
"""A product is divided when each part has more floating-point operations than this, …"""

NUMBERS_OF_A_PART = 12_288
"""… a loop when each part has more places. `benchmarks/threads.py` shows what lies behind both numbers."""


@dataclass(frozen=True)
class Routine:
    """A program as native code, before it is known where anything lies and how many rows there are.

    Attributes
    ----------
    values
        What the lines compute, and what they compute it from.
    schedule, kernels
        In which steps, and each loop's code.
    dtype
        The program's.
    blas
        What multiplies matrices.
    threads
        Into how many parts large steps are divided.
    """

    values: tuple[LoweredValue, ...]
    schedule: StepSchedule
    kernels: Mapping[FusedLoop, Kernel]
    dtype: str
    blas: Blas
    threads: int


class StepTable:
    """The steps of a routine for batches of ``n`` rows.

    Parameters
    ----------
    addresses
        Where each kept array, input array, number of the step and stored value lies.
    carried
        What a batch hands to the next.
    """

    def __init__(
        self, routine: Routine, addresses: Mapping[LoweredValue, int], n: int, carried: Carried
    ) -> None:
        self.addresses, self.n, self.carried = addresses, n, carried
        self.blas, self.threads, self.kind = routine.blas, routine.threads, FLOATS[routine.dtype]
        self.numbers: dict[str, Array] = {}  # those that stand in memory because loops read them there
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
        """Whether any step has parts that can be done at the same time."""
        return any(parts > 1 for _, _, _, parts, _ in self.records)

    def add(self, call: int, arguments: list[int], extent: int, parts: int, part: int) -> None:
        held = np.array(arguments, np.int64)
        self.arguments.append(held)
        self.records.append((call, held.ctypes.data, extent, parts, part))

    def address(self, value: LoweredValue) -> int:
        """Return where a value lies; numbers that follow from the size of the batch are put somewhere now."""
        if value in self.addresses:
            return self.addresses[value]
        if value.operation == "constant":
            return self.number(value.attribute)
        return self.number(float(value.attribute.at(self.n)))

    def number(self, number: float) -> int:
        exact = float(number).hex()  # 0.0 and -0.0 are two numbers
        if exact not in self.numbers:
            self.numbers[exact] = np.array([number], float)
        return self.numbers[exact].ctypes.data

    def add_loop(self, loop: FusedLoop, kernel: Kernel) -> None:
        rows, columns = loop.rows.at(self.n), loop.columns.at(self.n)
        operands = (o.at(self.n) if isinstance(o, Extent) else self.address(o) for o in kernel.operands)
        arguments, direction = [rows, columns, *operands], loop.direction
        extent = rows if direction == "rows" else columns
        parts, part = 1, extent
        if direction != "not":
            parts = min(self.threads, rows * columns // NUMBERS_OF_A_PART, extent)
            parts, part = self.divided(extent, parts, LANES[self.kind] if direction == "columns" else 1)
        self.add(native().address(kernel.text), arguments, extent, parts, part)

    def divided(self, extent: int, parts: int, unit: int) -> tuple[int, int]:
        """Return how many parts there are and how long each is, a multiple of ``unit``."""
        if parts <= 1:
            return 1, extent
        part = -(-extent // (parts * unit)) * unit
        return -(-extent // part), part

    def add_product(self, step: Product) -> None:
        left, right = step.value.inputs
        a, a_transposed = left.matrix
        b, b_transposed = right.matrix
        k, n = (left.shape[-1].at(self.n), right.shape[1].at(self.n) if len(right.shape) > 1 else 1)
        m = step.value.size.at(self.n) // n
        target = step.value if step.target is None else step.target.inputs[0]
        scale = self.number(1.0) if step.scale is None else self.address(step.scale)
        row_product = m == 1 and step.target is None and not b_transposed
        row_update = k == 1 and step.target is not None
        # by columns all of A is packed twice; that should be the smaller
        by_columns = n >= m or row_product or row_update
        extent = n if by_columns else m
        parts = min(self.threads, int(2 * m * n * k / FLOPS_OF_A_PART), extent // 16)
        parts, part = self.divided(extent, parts, 16)
        if row_product:
            text = row_product_text(self.kind)
            row = self.carried.for_product(step)
            own = [self.address(b), k, n, self.address(a), self.address(target), *row]
        elif row_update:
            text = row_update_text(self.kind)
            row = self.carried.for_update(step, self.addresses)
            own = [self.address(target), m, n, self.address(a), self.address(b), scale, int(step.sign), *row]
        else:
            text = product_text(self.kind, self.blas.integer)
            own = [
                self.blas.function("sgemm" if self.kind == "float" else "dgemm", m * n * k, b_transposed),
                a_transposed, b_transposed, m, n, k,
                scale, int(step.sign), step.target is not None, self.address(a), m if a_transposed else k,
                self.address(b), k if b_transposed else n, self.address(target), n, by_columns,
            ]  # fmt: skip
        self.add(native().address(text), own, extent, parts, part)

    def add_check(self, step: Check) -> None:
        total, count = (value.base for value in step.reads)
        kinds = [self.kind if value.type == "float" else "double" for value in (total, count)]
        sums = self.addresses["sums"]  # type: ignore[index]
        self.add(
            native().address(check_text(*kinds)), [self.address(total), self.address(count), sums], 1, 1, 1
        )
