"""Products of a single row, and of a column with a row: what a batch of one row is made of.

Such a product does little with each number of W, so it takes as long as reading W does. Two of them follow one another
where batches have one row: ``W -= learning_rate * (x.T @ dz)`` ends a step, and ``x @ W`` begins the next. Where rows
are multiplied without conversion, the update multiplies the next one on its way, so that W is read once for both.

Every sum goes over W's rows in their order, whichever way it is done: the numbers are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from handgrad.engines.compiled.blas import CBLAS_NO_TRANS, CBLAS_ROW_MAJOR, CBLAS_TRANS
from handgrad.engines.compiled.elementary import as_kind
from handgrad.engines.compiled.fusion import Product, StepSchedule
from handgrad.engines.compiled.ir import LANES, ONE, PART, ZERO, Code, Number, literal, module
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
        """Say that nothing is done ahead: rows or weights may be others now."""
        self.done[0] = -1

    def for_product(self, step: Product) -> list[int]:
        """Return the addresses of the number of the row to be multiplied, of that done ahead, and of its result."""
        mine = self.ahead is not None and step is self.ahead.product
        compared = (self.order, self.done) if mine else (self.some, self.nothing)
        return [array.ctypes.data for array in (*compared, self.result)]

    def for_update(self, step: Product, addresses: Mapping[LoweredValue, int]) -> list[int]:
        """Return the addresses of all rows, of the next one's number, of where to write that once done, and the result."""
        mine = self.ahead is not None and step is self.ahead.update
        rows = addresses[self.ahead.rows] if self.ahead is not None and mine else 0
        cells = (self.order[1:], self.done) if mine else (self.nothing, self.nothing)
        return [rows, *(array.ctypes.data for array in (*cells, self.result))]


def product_text(kind: str, integer: str) -> str:
    """Return the code of a step that multiplies matrices: C ← scale · A B + keep · C.

    Its arguments: the library's function · A transposed · B transposed · rows, columns and inner size · the address of
    the scale (a double) · its sign · what C is multiplied by first · A, the length of its rows · B · C · whether the
    parts are columns. Flags, signs and factors are 1, 0 or -1, as whole numbers.
    """
    code = Code()
    call, scale, a, b, c = (code.argument(place, "ptr") for place in (0, 6, 9, 11, 13))
    a_flag, b_flag, m, n, k, sign, keep, lda, ldb, ldc, column_flag = (
        code.argument(place) for place in (1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 15)
    )
    a_transposed, b_transposed, by_columns = (
        code.compare("ne", flag, ZERO) for flag in (a_flag, b_flag, column_flag)
    )
    alpha = as_kind(
        code, code.binary("fmul", code.load(scale.text, "double"), code.cast("sitofp", sign, "double")), kind
    )
    first, extent = PART[0], code.binary("sub", PART[1], PART[0])
    rows, columns = code.select(by_columns, m, extent), code.select(by_columns, extent, n)
    far_a = code.binary("mul", first, code.select(a_transposed, ONE, lda))
    far_b = code.binary("mul", first, code.select(b_transposed, ldb, ONE))
    far_c = code.select(by_columns, first, code.binary("mul", first, ldc))
    a = Number(code.address(a.text, kind, code.select(by_columns, ZERO, far_a)), "ptr")
    b = Number(code.address(b.text, kind, code.select(by_columns, far_b, ZERO)), "ptr")
    c = Number(code.address(c.text, kind, far_c), "ptr")
    plain, transposed = literal(CBLAS_NO_TRANS, "i32"), literal(CBLAS_TRANS, "i32")
    layouts = [code.select(flag, transposed, plain) for flag in (a_transposed, b_transposed)]
    sizes = [rows, columns, k, lda, ldb, ldc]
    if integer == "i32":
        sizes = [code.cast("trunc", size, integer) for size in sizes]
    rows, columns, k, lda, ldb, ldc = sizes
    beta = code.cast("sitofp", keep, kind)
    row_major = literal(CBLAS_ROW_MAJOR, "i32")
    code.call(call.text, "void", row_major, *layouts, rows, columns, k, alpha, a, lda, b, ldb, beta, c, ldc)
    return module(code.define())


def row_product_text(kind: str) -> str:
    """Return the code of ``z = x @ W`` for one row.

    Its arguments: W · how many rows and columns it has · x · z · the addresses of the number of x's row, that of the row
    done ahead, and what came of it.
    """
    code = Code()
    w, x, z, number, done, ahead = (code.argument(place, "ptr") for place in (0, 3, 4, 5, 6, 7))
    sizes = code.argument(1), code.argument(2)
    is_done = code.compare("eq", code.load(done.text, "i64"), code.load(number.text, "i64"))
    with code.when(is_done), code.loop(*PART) as column:
        result = code.load(code.address(ahead.text, kind, column), kind)
        code.store(result, code.address(z.text, kind, column))
    with code.when(code.negated(is_done)):
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
    factor = as_kind(code, code.binary("fmul", code.load(scale.text, "double"), sign), kind)
    number = code.load(following.text, "i64")
    code.store(number, done.text)
    wanted = code.compare("sge", number, ZERO)
    with code.when(wanted):
        start = code.binary("mul", number, inner)
        y = Number(code.address(rows.text, kind, start), "ptr")
        _Sweep(code, kind, w, *sizes, update=(x, dz, factor), forward=(y, ahead)).write()
    with code.when(code.negated(wanted)):
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
        is_narrow = code.compare("sle", self.columns, literal(strip, "i64"))
        block = code.select(is_narrow, self.inner, literal(BLOCK, "i64"))
        count = code.binary("sdiv", code.binary("sub", code.binary("add", self.inner, block), ONE), block)
        first, last = PART
        rest = code.binary("srem", code.binary("sub", last, first), literal(strip, "i64"))
        whole = code.binary("sub", last, rest)
        with code.loop(ZERO, count) as number:
            begin = code.binary("mul", number, block)
            end = code.intrinsic("smin", code.binary("add", begin, block), self.inner)
            with code.loop(first, whole, strip) as column:
                further = [code.binary("add", column, literal(k * lanes, "i64")) for k in range(VECTORS)]
                self.strip(begin, end, further, None)
            with code.loop(whole, last, lanes) as column:
                left = code.splat(code.binary("sub", last, column), lanes)
                self.strip(begin, end, [column], code.compare("slt", code.lanes(lanes), left))

    def strip(self, begin: Number, end: Number, columns: list[Number], mask: Number | None) -> None:
        """Go over some rows, with some vectors of each."""
        code = self.code
        changes = [self.change(column, mask) for column in columns] if self.update else []
        totals = [self.total(column, begin, mask) for column in columns] if self.forward else []
        with code.loop(begin, end) as row:
            start = code.binary("mul", row, self.columns)
            x = self.element(self.update[0], row) if self.update else None
            y = self.element(self.forward[0], row) if self.forward else None
            for k, column in enumerate(columns):
                address = code.address(self.w.text, self.kind, code.binary("add", start, column))
                w = code.load(address, self.kind, LANES[self.kind], mask)
                if x is not None:
                    w = code.intrinsic("fmuladd", x, changes[k], w)
                    code.store(w, address, mask)
                if y is not None:
                    code.assign(totals[k], code.intrinsic("fmuladd", y, w, self.held(totals[k])))
        if self.forward:
            for k, column in enumerate(columns):
                code.store(self.held(totals[k]), code.address(self.forward[1].text, self.kind, column), mask)

    def change(self, column: Number, mask: Number | None) -> Number:
        """Return ``factor · dz`` at some columns."""
        assert self.update is not None
        _, dz, factor = self.update
        return self.code.binary(
            "fmul", self.vector(dz, column, mask), self.code.splat(factor, LANES[self.kind])
        )

    def total(self, column: Number, begin: Number, mask: Number | None) -> str:
        """Return the variable for a sum at some columns: what earlier rows came to, or 0."""
        assert self.forward is not None
        none = literal(0, self.kind, LANES[self.kind])
        before = self.vector(self.forward[1], column, mask)
        variable = self.code.variable(none)
        self.code.assign(variable, self.code.select(self.code.compare("eq", begin, ZERO), none, before))
        return variable

    def vector(self, of: Number, index: Number, mask: Number | None) -> Number:
        address = self.code.address(of.text, self.kind, index)
        return self.code.load(address, self.kind, LANES[self.kind], mask)

    def held(self, variable: str) -> Number:
        return self.code.recall(variable, self.kind, LANES[self.kind])

    def element(self, of: Number, row: Number) -> Number:
        """Return one number of a row, in every lane."""
        number = self.code.load(self.code.address(of.text, self.kind, row), self.kind)
        return self.code.splat(number, LANES[self.kind])
