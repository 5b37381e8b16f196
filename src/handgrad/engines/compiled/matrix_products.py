"""Products of matrices by BLAS, and products of one row, which do little with each number of W they read.

Batches of one row end with ``W -= learning_rate * (x.T @ dz)``, and begin with ``x @ W``: where rows are multiplied
without conversion, the update multiplies the next row on its way, so that W is read once for both. Every sum goes over
W's rows in their order, whichever way it is done: the numbers are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.blas import CBLAS_ROW_MAJOR
from handgrad.engines.compiled.elementary import as_kind
from handgrad.engines.compiled.fusion import Product, StepSchedule
from handgrad.engines.compiled.ir import LANES, ONE, ZERO, Code, Number, literal, module
from handgrad.program.lowered import LoweredValue

VECTORS = 8
"""So many vectors of a row of W are held in registers, of which AVX-512 has 32; …"""

BLOCK = 8
"""… where W is wider, so many of its rows are gone through side by side: what is read together is close in memory."""


@dataclass(frozen=True)
class Ahead:
    """A product with a row of ``rows`` that can be done ahead, by the update of its matrix in the step before."""

    product: Product
    update: Product
    rows: LoweredValue


def find_ahead(schedule: StepSchedule) -> Ahead | None:
    """Return the product that can be done ahead, or None."""
    products = [step for step in schedule.steps if isinstance(step, Product)]
    updates = {step.target.target: step for step in products if step.target is not None}
    for step in products:
        if not step.is_of_two_matrices:
            continue
        (x, x_transposed), (w, w_transposed) = (operand.matrix for operand in step.value.inputs)
        if step.target is not None or x_transposed or w_transposed or len(x.shape) != 2:
            continue
        unconverted = x.operation == "take" and [v.operation for v in x.inputs] == ["source", "order"]
        if unconverted and w.operation == "load" and w.attribute in updates:
            return Ahead(step, updates[w.attribute], x.inputs[0])
    return None


class Carried:
    """What a batch of one row hands to the next: the product that it did ahead (if any), and of which row.

    ``order`` is the number of the batch's row, and behind it that of the next, which is -1 after the last.
    """

    def __init__(self, ahead: Ahead | None, order: NDArray[np.int64], dtype: str) -> None:
        self.ahead, self.order = ahead, order
        self.result = np.zeros(ahead.product.value.shape[-1].factor if ahead else 0, dtype)
        self.done = np.array([-1])
        # for all other steps: `some` never equals `nothing`, so that no row counts as done, and none is done ahead
        self.some, self.nothing = np.array([0]), np.array([-1])

    def forget(self) -> None:
        """Note that nothing is done ahead: rows or weights may be others now."""
        self.done[0] = -1

    def for_product(self, step: Product) -> list[int]:
        """Return the addresses of the number of the row to be multiplied, of that done ahead, and of its result."""
        is_ahead = self.ahead is not None and step is self.ahead.product
        cells = (self.order, self.done) if is_ahead else (self.some, self.nothing)
        return [array.ctypes.data for array in (*cells, self.result)]

    def for_update(self, step: Product, addresses: Mapping[LoweredValue, int]) -> list[int]:
        """Return the addresses of all rows, of the next one's number, of where to write it once done, and the result."""
        rows, cells = 0, (self.nothing, self.nothing)
        if self.ahead is not None and step is self.ahead.update:
            rows, cells = addresses[self.ahead.rows], (self.order[1:], self.done)
        return [rows, *(array.ctypes.data for array in (*cells, self.result))]


def product_text(kind: str, integer: str) -> str:
    """Return the code of a step that multiplies matrices: C ← sign · scale · A B + keep · C.

    Its arguments: the library's function · the layouts of A and B · rows, columns and inner size · the address of the
    scale (a double) · sign · keep · A, the length of its rows · the same of B and C · how far apart the chunks begin in
    A, B and C · whether a chunk is some of the columns. Sign, keep and the last are whole numbers.
    """
    code = Code()
    function, scale, a, b, c = (code.argument(place, "ptr") for place in (0, 6, 9, 11, 13))
    layouts = [code.cast("trunc", code.argument(place), "i32") for place in (1, 2)]
    m, n, k, sign, keep, lda, ldb, ldc, by_columns = map(code.argument, (3, 4, 5, 7, 8, 10, 12, 14, 18))
    first, last = code.part
    extent, divides_columns = last - first, by_columns.differs(0)
    sizes = [
        code.select(divides_columns, m, extent),
        code.select(divides_columns, extent, n),
        k,
        lda,
        ldb,
        ldc,
    ]
    if integer == "i32":
        sizes = [code.cast("trunc", size, integer) for size in sizes]
    rows, columns, k, lda, ldb, ldc = sizes
    alpha = as_kind(code, code.load(scale.text, "double") * code.cast("sitofp", sign, "double"), kind)
    beta, row_major = code.cast("sitofp", keep, kind), literal(CBLAS_ROW_MAJOR, "i32")
    a, b, c = (
        Number(code.address(matrix.text, kind, first * code.argument(place)), "ptr")
        for matrix, place in ((a, 15), (b, 16), (c, 17))
    )
    code.call(
        function.text, "void", row_major, *layouts, rows, columns, k, alpha, a, lda, b, ldb, beta, c, ldc
    )
    return module(code.define())


def stacked_product_text(kind: str, integer: str, axes: int) -> str:
    """Return the code of a step that multiplies stacks of matrices: C ← A B for each place of a stack of so many axes.

    Its arguments: the library's function · the layouts of A and B · rows, columns and inner size · A, the length of its
    rows · the same of B and C · of each axis of the stack, the last one first: its size, and how far apart the matrices
    of A, B and C are along it. A chunk is some places of the stack.
    """
    code = Code()
    function, *matrices = (code.argument(place, "ptr") for place in (0, 6, 8, 10))
    layouts = [code.cast("trunc", code.argument(place), "i32") for place in (1, 2)]
    sizes = [code.argument(place) for place in (3, 4, 5, 7, 9, 11)]
    if integer == "i32":
        sizes = [code.cast("trunc", size, integer) for size in sizes]
    m, n, k, lda, ldb, ldc = sizes
    stack = [[code.argument(12 + 4 * axis + place) for place in range(4)] for axis in range(axes)]
    row_major, one, none = literal(CBLAS_ROW_MAJOR, "i32"), literal(1, kind), literal(0, kind)
    with code.loop(*code.part) as rest:
        starts = [ZERO, ZERO, ZERO]
        for size, *strides in stack:
            index = rest % size
            rest = rest // size
            starts = [start + index * stride for start, stride in zip(starts, strides, strict=True)]
        a, b, c = (
            Number(code.address(matrix.text, kind, start), "ptr")
            for matrix, start in zip(matrices, starts, strict=True)
        )
        code.call(function.text, "void", row_major, *layouts, m, n, k, one, a, lda, b, ldb, none, c, ldc)
    return module(code.define())


def row_product_text(kind: str) -> str:
    """Return the code of ``z = x @ W`` for one row.

    Its arguments: W · how many rows and columns it has · x · z · the addresses of the number of x's row, that of the row
    done ahead, and its result.
    """
    code = Code()
    w, x, z, number, done, ahead = (code.argument(place, "ptr") for place in (0, 3, 4, 5, 6, 7))
    sizes = code.argument(1), code.argument(2)
    is_done = code.load(done.text, "i64").equals(code.load(number.text, "i64"))
    with code.when(is_done), code.loop(*code.part) as column:
        result = code.load(code.address(ahead.text, kind, column), kind)
        code.store(result, code.address(z.text, kind, column))
    with code.when(~is_done):
        _Sweep(code, kind, w, *sizes, forward=(x, z)).write()
    return module(code.define())


def row_update_text(kind: str) -> str:
    """Return the code of ``W += sign · scale · x.T @ dz`` for one row, and of the next row's product where wanted.

    Its arguments: W · how many rows and columns it has · x · dz · the scale (a double) · its sign · all rows · where
    the number of the row to be done ahead is, where it is written once it is done, and its result.
    """
    code = Code()
    w, x, dz, scale, rows, following, done, ahead = (
        code.argument(place, "ptr") for place in (0, 3, 4, 5, 7, 8, 9, 10)
    )
    sizes = inner, _ = code.argument(1), code.argument(2)
    sign = code.cast("sitofp", code.argument(6), "double")
    factor = as_kind(code, code.load(scale.text, "double") * sign, kind)
    number = code.load(following.text, "i64")
    code.store(number, done.text)
    wanted = number >= ZERO
    with code.when(wanted):
        y = Number(code.address(rows.text, kind, number * inner), "ptr")
        _Sweep(code, kind, w, *sizes, update=(x, dz, factor), forward=(y, ahead)).write()
    with code.when(~wanted):
        _Sweep(code, kind, w, *sizes, update=(x, dz, factor)).write()
    return module(code.define())


@dataclass
class _Sweep:
    """One pass over some columns of W.

    With ``update``, x, dz and a factor: ``W += factor · x.T @ dz`` on the way. With ``forward``, y and z: ``z = y @ W``, of
    what W is then.
    """

    code: Code
    kind: str
    w: Number
    inner: Number
    columns: Number
    update: tuple[Number, Number, Number] | None = None
    forward: tuple[Number, Number] | None = None

    def write(self) -> None:
        """Go over blocks of rows, and in each over strips of columns."""
        code, lanes = self.code, LANES[self.kind]
        strip = VECTORS * lanes
        block = code.select(self.columns <= strip, self.inner, literal(BLOCK, "i64"))
        count = (self.inner + block - ONE) // block
        first, last = code.part
        whole = last - (last - first) % strip
        with code.loop(ZERO, count) as number:
            begin = number * block
            end = code.intrinsic("smin", begin + block, self.inner)
            with code.loop(first, whole, strip) as column:
                self.strip(begin, end, [column + k * lanes for k in range(VECTORS)], None)
            with code.loop(whole, last, lanes) as column:
                left = code.splat(last - column, lanes)
                self.strip(begin, end, [column], code.lanes(lanes) < left)

    def strip(self, begin: Number, end: Number, columns: list[Number], mask: Number | None) -> None:
        code, kind, lanes = self.code, self.kind, LANES[self.kind]
        changes, totals = [], []
        if self.update:
            x_row, dz, factor = self.update
            changes = [self.vector(dz, column, mask) * code.splat(factor, lanes) for column in columns]
        if self.forward:
            y_row, z = self.forward
            totals = [self.total(z, column, begin, mask) for column in columns]
        with code.loop(begin, end) as row:
            start = row * self.columns
            x = self.element(x_row, row) if self.update else None
            y = self.element(y_row, row) if self.forward else None
            for k, column in enumerate(columns):
                address = code.address(self.w.text, kind, start + column)
                w = code.load(address, kind, lanes, mask)
                if x is not None:
                    w = code.intrinsic("fmuladd", x, changes[k], w)
                    code.store(w, address, mask)
                if y is not None:
                    total = code.recall(totals[k], kind, lanes)
                    code.assign(totals[k], code.intrinsic("fmuladd", y, w, total))
        for variable, column in zip(totals, columns, strict=False):
            code.store(code.recall(variable, kind, lanes), code.address(z.text, kind, column), mask)

    def total(self, z: Number, column: Number, begin: Number, mask: Number | None) -> str:
        """Return the variable for a sum at some columns: what earlier rows came to, or 0."""
        none = literal(0, self.kind, LANES[self.kind])
        before = self.vector(z, column, mask)
        variable = self.code.variable(none)
        self.code.assign(variable, self.code.select(begin.equals(ZERO), none, before))
        return variable

    def vector(self, of: Number, index: Number, mask: Number | None) -> Number:
        address = self.code.address(of.text, self.kind, index)
        return self.code.load(address, self.kind, LANES[self.kind], mask)

    def element(self, of: Number, row: Number) -> Number:
        number = self.code.load(self.code.address(of.text, self.kind, row), self.kind)
        return self.code.splat(number, LANES[self.kind])
