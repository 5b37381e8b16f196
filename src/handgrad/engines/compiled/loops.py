"""Fused loops as native code: one function for loops with the same operations, whatever their sizes and their network.

row by row:  what is computed once in a row · a pass over the columns · what that pass summed up · the next pass …

Sums of many short rows are computed column by column instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from handgrad.engines.compiled.elementary import as_kind, uniform
from handgrad.engines.compiled.elementwise import (
    FLOATS,
    FOLDS,
    KINDS,
    LITERALS,
    NEUTRAL,
    apply_elementwise,
    combine,
)
from handgrad.engines.compiled.fused_loop import FusedLoop
from handgrad.engines.compiled.ir import LANES, ONE, ZERO, Code, Number, literal, module
from handgrad.engines.compiled.loop_fits import Access, Level, access_of
from handgrad.engines.compiled.placement import Homes
from handgrad.engines.compiled.triangles import block_size
from handgrad.program.lowered import NONE, REDUCTIONS, Extent, LoweredValue
from handgrad.program.lowered import ONE as ONE_ELEMENT

MANY_ROWS, FEW_VECTORS = 16, 8
"""Where a batch has so many times its rows, each no longer than so many vectors, columns are summed one by one."""


@dataclass(frozen=True)
class Kernel:
    """A loop's native code, what its arguments are behind rows and columns, and which values it writes to memory."""

    text: str
    operands: tuple[LoweredValue | Extent, ...]
    stored: frozenset[LoweredValue]


class KernelWriter:
    """Writes one loop's code.

    ``stored`` are the values that are read later, ``homes`` where those of them are written that have no memory of their
    own, ``sources`` the types of input arrays.
    """

    def __init__(
        self,
        loop: FusedLoop,
        stored: Iterable[LoweredValue],
        homes: Homes,
        dtype: str,
        sources: dict[str, str],
    ) -> None:
        self.loop, self.dtype, self.sources = loop, dtype, sources
        self.homes = {value: homes[value] for value in loop.values if value in homes}
        self.starts: dict[Access, Number] = {}  # where the row at hand begins, in memory that is accessed so
        self.kind = FLOATS[dtype]
        self.lanes = LANES[self.kind]
        self.code = Code()
        self.passes = loop.passes
        self.stored = {value for value in loop.values if value in set(stored) or value.target} | loop.carried
        self.operands: list[LoweredValue | Extent] = []
        self.registers: dict[tuple[LoweredValue, Level], Number] = {}
        self.totals: dict[LoweredValue, str] = {}
        self.mask: Number | None = None

    def write(self) -> Kernel:
        code, direction = self.code, self.loop.direction
        rows, self.columns = (code.argument(place) for place in (0, 1))
        over_rows = code.part if direction == "rows" else (ZERO, rows)
        self.first, self.last = code.part if direction == "columns" else (ZERO, self.columns)
        self.row = self.column = ZERO
        self.start_totals()
        self.scalars()
        if self.is_narrow:
            self.column_by_column(rows)
        elif not self.loop.has_only_numbers:
            with code.loop(*over_rows) as self.row:
                self.row_start = self.row * self.columns
                if self.loop.is_of_triangles:
                    self.last = self.end_of_triangle()
                self.find_starts()
                for number in range(max(self.passes.values()) + 1):
                    self.rowwise(number)
                    self.columnwise(number)
                self.rowwise(None)
        self.finish_totals()
        return Kernel(module(code.define()), tuple(self.operands), frozenset(self.stored))

    def end_of_triangle(self) -> Number:
        """Return how many columns the row has, in a matrix that is computed in blocks up to the diagonal."""
        block = self.extent(Extent(block_size(self.loop.columns.factor)))
        end = (self.row % self.columns // block + 1) * block
        return self.code.intrinsic("smin", end, self.columns)

    @property
    def is_narrow(self) -> bool:
        """Whether it sums many rows of few columns: then each column's sum stays in a register while all rows are read."""
        levels, rows, columns = self.loop.levels.values(), self.loop.rows, self.loop.columns
        return (
            self.loop.direction == "columns"
            and {*levels} <= {"full", "column", "scalar"}
            and not any(value.operation == "add_rows_at" for value in self.loop.values)
            and rows.factor >= MANY_ROWS
            and not columns.rows
            and columns.factor <= FEW_VECTORS * self.lanes
        )

    def column_by_column(self, rows: Number) -> None:
        """Write a loop over vectors of columns, with one over all rows in each."""
        values = [
            v for v, level in self.loop.levels.items() if v not in self.loop.repeated and level != "scalar"
        ]
        rest = (self.last - self.first) % self.lanes
        full = self.last - rest
        with self.code.loop(self.first, full, self.lanes) as self.column:
            self.down(values, rows, None)
        with self.code.when(rest > ZERO):
            self.column = full
            self.down(values, rows, self.code.lanes(self.lanes) < self.code.splat(rest, self.lanes))

    def down(self, values: list[LoweredValue], rows: Number, mask: Number | None) -> None:
        """Go through all rows at the columns from ``self.column`` on."""
        summed = [value for value in values if value.operation in REDUCTIONS]
        for value in summed:
            start = literal(NEUTRAL[value.operation], self.kind, self.lanes)
            self.totals[value] = self.code.variable(start)
            self.code.assign(self.totals[value], start)
        with self.code.loop(ZERO, rows) as self.row:
            self.row_start = self.row * self.columns
            self.find_starts()
            self.body(values, mask)
        for value in summed:
            total = self.code.recall(self.totals.pop(value), self.kind, self.lanes)
            self.code.store(total, self.code.address(self.place_of(value), self.kind, self.column), mask)

    def slot(self, operand: LoweredValue | Extent) -> int:
        """Return the place of an operand among the arguments."""
        if operand not in self.operands:
            self.operands.append(operand)
        return self.operands.index(operand) + 2

    def place_of(self, value: LoweredValue) -> str:
        """Return the register that holds the address of a value, read at the start of the function."""
        slot = self.slot(value)
        name = f"%place{slot}"
        read = f"  {name}.at = getelementptr i64, ptr %arguments, i64 {slot}"
        if read not in self.code.start:
            self.code.start += [read, f"  {name} = load ptr, ptr {name}.at, align 8"]
        return name

    # where rows are

    def find_starts(self) -> None:
        """Compute where the row begins in everything that is not read or written one row after the other."""
        self.starts = {}
        for value in self.loop.values:
            fit = self.loop.fits[value]
            for access in (*fit.accesses, fit.result, self.home(value)):
                if access is not None:
                    self.start(access)

    def start(self, access: Access) -> Number:
        """Return where the row begins that is at hand."""
        if access not in self.starts:
            start, rest = self.extent(access.offset), self.row
            for place, (size, stride) in enumerate(access.rows, 1):
                is_last = place == len(access.rows)
                if stride != NONE:
                    index = rest if is_last else rest % self.extent(size)
                    start = start + index * self.extent(stride)
                if not is_last:
                    rest = rest // self.extent(size)
            self.starts[access] = start
        return self.starts[access]

    def extent(self, extent: Extent) -> Number:
        """Return a size; only 0 and 1 are written into the code."""
        known = {NONE: ZERO, ONE_ELEMENT: ONE}
        return known[extent] if extent in known else self.code.argument(self.slot(extent))

    def home(self, value: LoweredValue) -> Access | None:
        """Return where a value is written that has no memory of its own."""
        if value not in self.homes:
            return None
        access = access_of(self.homes[value], value.shape, value.shape, self.loop.fits[value].split)
        assert access is not None
        return access

    # what is computed once

    def scalars(self) -> None:
        """Read the single numbers there are, and compute those that follow from others."""
        for value in self.loop.values:
            self.read_ahead(value, "scalar")
        for value in self.loop.values:
            if self.loop.levels[value] == "scalar" and value.operation not in REDUCTIONS:
                result = self.registers[value, "scalar"] = self.apply(value, 1)
                self.save(value, result, ZERO)

    def start_totals(self) -> None:
        """Set to zero what is summed up over the whole loop."""
        for value in self.loop.values:
            level = self.loop.levels[value]
            if value.operation == "add_rows_at":
                self.clear(value, self.code.argument(self.slot(value.shape[0])))
            elif value.operation in REDUCTIONS and level == "column":
                self.clear(value, ONE)
            elif level == "group":
                self.clear(value, self.extent(value.size // self.loop.columns))
            elif value.operation in REDUCTIONS and level == "scalar":
                start = literal(NEUTRAL[value.operation], *self.total_type(value))
                self.totals[value] = self.code.variable(start)

    def total_type(self, value: LoweredValue) -> tuple[str, int]:
        """Return the type of a total over the loop; of numbers of a row, double: of millions, float32 would lose some."""
        return (self.kind, self.lanes) if self.loop.sums_columns(value) else ("double", 1)

    def clear(self, value: LoweredValue, rows: Number) -> None:
        """Write the neutral element at the columns of a result, in so many rows."""
        place = self.place_of(value)
        with self.code.loop(ZERO, rows) as row:
            start = row * self.columns
            with self.code.loop(self.first, self.last) as column:
                address = self.code.address(place, self.kind, start + column)
                self.code.store(literal(NEUTRAL[value.operation], self.kind), address)

    def finish_totals(self) -> None:
        for value, variable in self.totals.items():
            kind, width = self.total_type(value)
            total = self.code.recall(variable, kind, width)
            total = self.code.fold(FOLDS[value.operation], literal(0, kind), total)
            self.code.store(as_kind(self.code, total, self.kind), self.place_of(value))

    def read_ahead(self, value: LoweredValue, level: Level) -> None:
        """Read what a value needs of a level before the loop that computes it begins."""
        for operand, at, access in self.operands_of(value):
            if at == level and operand.source not in self.loop.levels:
                self.read(operand, at, 1, access)

    def operands_of(self, value: LoweredValue) -> Iterator[tuple[LoweredValue, Level, Access | None]]:
        fit = self.loop.fits[value]
        yield from zip(value.inputs, fit.operands, fit.accesses, strict=True)

    # what is computed once in a row

    def rowwise(self, number: int | None) -> None:
        """Compute what is computed once in a row and is complete before this pass; None: after the last."""
        for value in self.loop.values:
            level = self.loop.levels[value]
            own = level == "row" or (level == "scalar" and value.operation in REDUCTIONS)
            if not own or self.loop.sums_columns(value) or (value, "row") in self.registers:
                continue
            if number is not None and self.passes[value] != number:
                continue
            if level == "row":
                self.put(value, self.apply(value, 1))
            elif number is None:
                self.accumulate(value, as_kind(self.code, self.operand(value, 1), "double"))
        if number is None:
            self.registers = {key: held for key, held in self.registers.items() if key[1] == "scalar"}

    def put(self, value: LoweredValue, result: Number) -> None:
        self.registers[value, "row"] = result
        self.save(value, result, self.row)

    # what is computed at every column

    def columnwise(self, number: int) -> None:
        """Write one pass over the columns: vectors, then the rest of them under a mask."""
        values = [
            v for v in self.loop.values
            if self.passes[v] == number and v not in self.loop.repeated
            and "full" in (self.loop.levels[v], *self.loop.fits[v].operands)
        ]  # fmt: skip
        if not values:
            return
        for value in (*values, *(self.loop.repeated & self.loop.levels.keys())):
            self.read_ahead(value, "row")
        sums: dict[LoweredValue, str] = {}
        for value in (v for v in values if v.operation in REDUCTIONS and self.loop.levels[v] == "row"):
            start = literal(NEUTRAL[value.operation], self.kind, self.lanes)
            sums[value] = self.totals[value] = self.code.variable(start)
            self.code.assign(sums[value], start)
        rest = (self.last - self.first) % self.lanes
        full = self.last - rest
        with self.code.loop(self.first, full, self.lanes) as self.column:
            self.body(values, None)
        with self.code.when(rest > ZERO):
            self.column = full
            lanes = self.code.lanes(self.lanes)
            self.body(values, lanes < self.code.splat(rest, self.lanes))
        for value, variable in sums.items():
            wide = self.code.recall(variable, self.kind, self.lanes)
            del self.totals[value]
            self.put(value, self.code.fold(FOLDS[value.operation], literal(0, self.kind), wide))

    def body(self, values: list[LoweredValue], mask: Number | None) -> None:
        """Compute the values of one pass at the columns from ``self.column`` on."""
        held = dict(self.registers)
        self.mask = mask
        for value in values:
            if value.operation == "add_rows_at":
                row = self.read(value.inputs[1], "row", 1) * self.columns
                operand = self.read(value.inputs[0], "full", self.lanes)
                self.add_at(value, operand, row + self.column)
            elif value.operation not in REDUCTIONS:
                result = self.registers[value, "full"] = self.apply(value, self.lanes)
                if value in self.stored:
                    self.save(value, result, self.index("full", self.home(value)), mask)
            elif self.loop.levels[value] == "column" and value not in self.totals:
                self.add_at(value, self.operand(value, self.lanes), self.column)
            elif self.loop.levels[value] == "group":
                index = self.index("full", self.loop.fits[value].result)
                self.add_at(value, self.operand(value, self.lanes), index)
            else:
                self.accumulate(value, self.operand(value, self.lanes))
        self.registers, self.mask = held, None

    def operand(self, value: LoweredValue, width: int) -> Number:
        """Read what a reduction reduces."""
        ((operand, level, access),) = self.operands_of(value)
        return self.read(operand, level, width, access)

    def index(self, level: Level, access: Access | None = None) -> Number:
        """Return where the next elements of a level are."""
        if access is not None:
            start = self.start(access)
            if access.step == NONE or level in ("row", "scalar"):
                return start
            return start + self.column * self.extent(access.step)
        if level == "full":
            return self.row_start + self.column
        return {"row": self.row, "column": self.column, "scalar": ZERO}[level]

    def accumulate(self, value: LoweredValue, operand: Number) -> None:
        """Add to a running sum, or compare with the largest so far."""
        total = self.code.recall(self.totals[value], operand.kind, operand.width)
        if operand.width > 1 and self.mask is not None:
            neutral = literal(NEUTRAL[value.operation], operand.kind, operand.width)
            operand = self.code.select(self.mask, operand, neutral)
        self.code.assign(self.totals[value], combine(self.code, value.operation, total, operand))

    def add_at(self, value: LoweredValue, operand: Number, index: Number) -> None:
        address = self.code.address(self.place_of(value), self.kind, index)
        total = self.code.load(address, self.kind, self.lanes, self.mask)
        self.code.store(combine(self.code, value.operation, total, operand), address, self.mask)

    # memory

    def save(self, value: LoweredValue, result: Number, index: Number, mask: Number | None = None) -> None:
        if value in self.stored:
            if result.kind == "i1":
                result = self.code.cast("zext", result, "i8")
            home = self.homes[value].base if value in self.homes else value
            self.code.store(result, self.code.address(self.place_of(home), result.kind, index), mask)

    def read(self, operand: LoweredValue, level: Level, width: int, access: Access | None = None) -> Number:
        """Return an operand at a level, from a register or from memory, side by side ``width`` times."""
        value = operand.source
        actual: Level = self.loop.levels.get(value, level)
        key = (operand if access is not None else value, actual)
        if key not in self.registers and value in self.loop.repeated:
            self.registers[key] = self.apply(value, self.lanes)
        elif key not in self.registers and value.operation == "constant" and value.attribute in LITERALS:
            self.registers[key] = literal(value.attribute, "double")
        elif key not in self.registers:
            wide = self.lanes if actual in ("full", "column") else 1
            if value in self.homes:
                access = self.home(value)
            self.registers[key] = self.load(value, self.index(actual, access), wide, access)
        return self.code.splat(self.registers[key], width)

    def load(self, value: LoweredValue, index: Number, width: int, access: Access | None = None) -> Number:
        """Read a value in memory at an index, as the type it is computed in."""
        is_source = value.operation == "source"
        laid_out = self.sources[value.attribute] if is_source else {**KINDS, "float": self.kind}[value.type]
        kind, _, unsigned = laid_out.partition(" ")
        place = self.place_of(self.homes[value].base if value in self.homes else value)
        mask = self.mask if width > 1 else None
        if width > 1 and access is not None and access.step != ONE_ELEMENT:
            apart = self.code.lanes(width) * self.code.splat(self.extent(access.step), width)
            loaded = self.code.gather(place, kind, self.code.splat(index, width) + apart, mask)
        else:
            loaded = self.code.load(self.code.address(place, kind, index), kind, width, mask)
        if value.type == "bool":
            return loaded.differs(0)
        if value.type == "int":
            wider = "zext" if unsigned else "sext"
            return loaded if kind == "i64" else self.code.cast(wider, loaded, "i64")
        if kind.startswith("i"):
            return self.code.cast("uitofp" if unsigned else "sitofp", loaded, self.kind)
        return as_kind(self.code, loaded, self.kind) if is_source else loaded

    # operations

    def apply(self, value: LoweredValue, width: int) -> Number:
        operation = value.operation
        if operation in ("take", "uniform", "is_class"):
            special: Callable[[LoweredValue, int], Number] = getattr(self, operation)
            return special(value, width)
        operands = (  # numbers that are the same everywhere are computed once, whatever they meet
            self.read(operand, at, 1 if at == "scalar" else width, access)
            for operand, at, access in self.operands_of(value)
        )
        return apply_elementwise(self.code, value, operands, self.kind, width)

    def take(self, value: LoweredValue, width: int) -> Number:
        """Read the row of a table that an index names."""
        table, index = value.inputs
        row = self.read(index, "row", 1)
        start = row * self.columns
        return self.load(table, start + self.column, width)

    def is_class(self, value: LoweredValue, width: int) -> Number:
        """Return 1 at the column that the row's label names, 0 elsewhere."""
        label = self.code.splat(self.read(value.inputs[0], "row", 1), width)
        start = self.code.splat(self.column, width)
        columns = start + self.code.lanes(width)
        return self.code.cast("uitofp", columns.equals(label), self.kind)

    def uniform(self, value: LoweredValue, width: int) -> Number:
        parts = [as_kind(self.code, self.read(part, "scalar", 1), "i64") for part in value.inputs]
        return uniform(self.code, parts, self.index("full"), width)
