"""The steps of a plan for one number of rows: each with its code, its addresses and sizes, and its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.batch_loop import STEP_SIZE, check_text
from handgrad.engines.compiled.blas import CBLAS_NO_TRANS, CBLAS_TRANS
from handgrad.engines.compiled.contractions import ImageContractions, contraction_text
from handgrad.engines.compiled.fused_loop import FusedLoop
from handgrad.engines.compiled.fusion import Check, Product, Step
from handgrad.engines.compiled.ir import BYTES, LANES
from handgrad.engines.compiled.loops import Kernel
from handgrad.engines.compiled.matrix_products import (
    product_text,
    row_product_text,
    row_update_text,
    stacked_product_text,
)
from handgrad.engines.compiled.native import native
from handgrad.engines.compiled.placement import Stack, stacked
from handgrad.engines.compiled.sparse_rows import sparse_product_text
from handgrad.engines.compiled.tiled_products import is_of_sequences, tiled
from handgrad.engines.compiled.triangles import pieces
from handgrad.engines.compiled.window_steps import WindowLoop, WindowProduct
from handgrad.program.lowered import NONE, Extent, LoweredValue, View, contiguous

if TYPE_CHECKING:
    from handgrad.engines.compiled.plan import Plan

Array = NDArray[Any]

MIN_FLOPS_PER_CHUNK = 2e6
"""A product is divided when each chunk has more floating-point operations than this, …"""

MIN_ELEMENTS_PER_CHUNK = 12_288
"""… a loop when each chunk has more elements. Both are calibrated by `benchmarks/threads.py`."""

PRODUCT_UNIT = 16
"""Chunks of a product are multiples of so many rows or columns: what BLAS holds in registers at a time."""


class StepTable:
    """Every address and number that native code is called with, for batches of ``n`` rows."""

    def __init__(self, plan: Plan, n: int) -> None:
        self.n, self.addresses, self.sums, self.carried = n, plan.addresses, plan.sums, plan.carried
        self.kind, self.threads, self.blas = plan.kind, plan.threads, plan.blas
        self.sparse, self.homes, self.copies = plan.sparse, plan.schedule.homes, plan.copies
        self.triangles = plan.schedule.triangles
        self.numbers: dict[str, Array] = {}  # those that are in memory because loops read them there
        self.arguments: list[Array] = []
        self.records: list[tuple[int, int, int, int, int]] = []
        self.time = 0  # of the loop at hand
        loops = {span: loop for loop, span in plan.schedule.spans.items()}
        number = 0
        while number < len(plan.schedule.steps):
            span = plan.schedule.span_of(number)
            self.is_in_loop = span in loops
            for self.time in loops[span].order if span in loops else (0,):
                for step in plan.schedule.steps[span.start : span.stop]:
                    self.add_step(step, plan.kernels)
            number = span.stop
        self.steps = np.array(self.records, np.int64).reshape(-1, STEP_SIZE)

    @property
    def is_divided(self) -> bool:
        """Whether any step has chunks that can be done at the same time."""
        return any(chunks > 1 for _, _, _, chunks, _ in self.records)

    def add_step(self, step: Step, kernels: Mapping[Step, Kernel]) -> None:
        match step:
            case FusedLoop():
                self.add_loop(step, kernels[step])
            case Product():
                self.add_product(step)
            case WindowLoop():
                self.add_window_loop(step, kernels[step])
            case WindowProduct():
                self.add_window_product(step)
            case Check():
                self.add_check(step)

    def add(self, text: str, arguments: list[int], extent: int, chunks: int = 1, unit: int = 1) -> None:
        """Add a step, divided into up to so many chunks, whose length is a multiple of ``unit``."""
        held = np.array(arguments, np.int64)
        self.arguments.append(held)
        chunks, length = self.divided(extent, chunks, unit)
        self.records.append((native().address(text), held.ctypes.data, extent, chunks, length))

    def divided(self, extent: int, chunks: int, unit: int) -> tuple[int, int]:
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
        operands = (
            o.at(self.n, self.time) if isinstance(o, Extent) else self.address(o) for o in kernel.operands
        )
        by_rows = loop.direction == "rows"
        extent, unit = (rows, 1) if by_rows else (columns, LANES[self.kind])
        chunks = min(self.threads, rows * columns // MIN_ELEMENTS_PER_CHUNK, extent)
        self.add(kernel.text, [rows, columns, *operands], extent, chunks * (loop.direction != "not"), unit)

    def add_window_loop(self, loop: WindowLoop, kernel: Kernel) -> None:
        operands = [o.at(self.n) if isinstance(o, Extent) else self.address(o) for o in kernel.operands]
        extent, unit = loop.images.at(self.n), 1
        if loop.sums_windows:
            extent, unit = loop.geometry.channels, LANES[self.kind]
        chunks = min(self.threads, loop.operand.size.at(self.n) // MIN_ELEMENTS_PER_CHUNK, extent)
        self.add(kernel.text, operands, extent, chunks, unit)

    def add_window_product(self, step: WindowProduct) -> None:
        arrays = [self.address(value) for value in (step.source, step.matrix, step.value)]
        self.add_contractions(step.contractions, step.images.at(self.n), arrays)

    def add_contractions(self, contractions: ImageContractions, images: int, arrays: list[int]) -> None:
        """Add contractions of so many images; ``arrays`` are the addresses of source, matrix and result."""
        extent = contractions.extent(images, self.kind)
        flops = 2 * contractions.products * images
        chunks, length = self.divided(extent, min(self.threads, int(flops / MIN_FLOPS_PER_CHUNK), extent), 1)
        if chunks * contractions.memory > len(self.copies):  # one copy at a time is needed
            self.copies = np.zeros(chunks * contractions.memory, self.copies.dtype)
            self.arguments.append(self.copies)
        arguments = [*arrays, self.copies.ctypes.data, length, images]
        self.add(contraction_text(self.kind, contractions), arguments, extent, chunks)

    def add_stacked_product(self, step: Product, home: View) -> None:
        """Add a product of stacks of matrices, or one whose rows are not one after the other."""
        stack = stacked(step.value, home)
        m, n, k = (size.at(self.n) for size in stack.sizes)
        whole = ((0, m), (0, n), (0, k))
        for rows, columns, inner in pieces(step.value, self.triangles) or (whole,):
            self.add_piece(stack, (rows, inner), (inner, columns), (rows, columns))

    def add_piece(self, stack: Stack, *parts: tuple[tuple[int, int], tuple[int, int]]) -> None:
        """Add a product of parts of A and B that is a part of C, each some rows and columns."""
        (m, k), (_, n) = [[last - first for first, last in part] for part in parts[:2]]
        function = self.blas.function(
            "sgemm" if self.kind == "float" else "dgemm", m * n * k, stack.transposed[1]
        )
        layouts = (CBLAS_TRANS if transposed else CBLAS_NO_TRANS for transposed in stack.transposed)
        arguments = [function, *layouts, m, n, k]
        for view, leading, transposed, ((row, _), (column, _)) in zip(
            stack.views, stack.leading, (*stack.transposed, False), parts, strict=True
        ):
            between, within = (1, leading.at(self.n)) if transposed else (leading.at(self.n), 1)
            offset = view.offset.at(self.n, self.time) + row * between + column * within
            arguments += [self.address(view.base) + offset * BYTES[self.kind], leading.at(self.n)]
        count = 1
        for size, *strides in stack.axes:
            count *= size.at(self.n)
            arguments += [size.at(self.n), *(stride.at(self.n) for stride in strides)]
        text = stacked_product_text(self.kind, self.blas.integer, len(stack.axes))
        chunks = min(self.threads, int(2 * m * n * k * count / MIN_FLOPS_PER_CHUNK), count)
        self.add(text, arguments, count, chunks)

    def add_tiled_product(self, step: Product, home: View) -> bool:
        """Add a product of sequences, or of a loop over time, without BLAS where that is faster; return whether it is."""
        is_one = self.is_in_loop or is_of_sequences(step.value)
        if step.target is not None or not is_one or self.is_sparse(step.value.inputs[0].base):
            return False
        stack = stacked(step.value, home)
        found, item = tiled(stack, self.n, self.kind), BYTES[self.kind]
        places = [self.address(v.base) + v.offset.at(self.n, self.time) * item for v in stack.views]
        for piece in found or ():
            contractions, (a, c) = piece.contractions, piece.start
            arrays = [places[0] + a * item, places[1], places[2] + c * item]
            self.add_contractions(contractions, piece.blocks, arrays)
        return found is not None

    def is_sparse(self, rows: LoweredValue) -> bool:
        return rows.operation == "take" and rows.inputs[0] in self.sparse

    def add_product(self, step: Product) -> None:
        home = self.homes.get(step.value)
        is_triangular = bool(pieces(step.value, self.triangles))
        place = home or View(step.value, NONE, contiguous(step.value.shape))
        if not is_triangular and self.add_tiled_product(step, place):
            return
        if home is not None or not step.is_of_two_matrices or is_triangular:
            self.add_stacked_product(step, place)
            return
        left, right = step.value.inputs
        (a, a_transposed), (b, b_transposed) = left.matrix, right.matrix
        k, n = (left.shape[-1].at(self.n), right.shape[1].at(self.n) if len(right.shape) > 1 else 1)
        m = step.value.size.at(self.n) // n
        target = step.value if step.target is None else step.target.inputs[0]
        scale = self.number(1.0) if step.scale is None else self.address(step.scale)
        at_b, at_c, sign = self.address(b), self.address(target), int(step.sign)
        if a.operation == "take" and (rows := a.inputs[0]) in self.sparse:
            arguments = [self.address(rows), self.address(a.inputs[1]), self.n, a_transposed, m, n]
            arguments += [at_b, at_c, scale, sign, step.target is not None]
            text = sparse_product_text(self.kind, self.sparse[rows])
            self.add(text, arguments, n, min(self.threads, m * n // MIN_ELEMENTS_PER_CHUNK), PRODUCT_UNIT)
            return
        at_a = self.address(a)
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
            layouts = (
                CBLAS_TRANS if transposed else CBLAS_NO_TRANS for transposed in (a_transposed, b_transposed)
            )
            lda, ldb = m if a_transposed else k, k if b_transposed else n
            apart = (0, ldb if b_transposed else 1, 1) if by_columns else (1 if a_transposed else lda, 0, n)
            arguments = [function, *layouts, m, n, k, scale, sign, step.target is not None]
            arguments += [at_a, lda, at_b, ldb, at_c, n, *apart, by_columns]
        extent = n if by_columns else m
        chunks = min(self.threads, int(2 * m * n * k / MIN_FLOPS_PER_CHUNK), extent // PRODUCT_UNIT)
        self.add(text, arguments, extent, chunks, PRODUCT_UNIT)

    def add_check(self, step: Check) -> None:
        values = [value.base for value in step.reads]
        kinds = [self.kind if value.type == "float" else "double" for value in values]
        self.add(check_text(*kinds), [*map(self.address, values), self.sums.ctypes.data], 1)
