"""Fused loops as native code: one function for loops with the same operations, whatever their sizes and their network.

row by row:  what is computed once in a row · a pass over the columns · what that pass summed up · the next pass …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from handgrad.engines.compiled.elementary import as_kind, elementwise, uniform
from handgrad.engines.compiled.fusion import FusedLoop, Level
from handgrad.engines.compiled.ir import LANES, ONE, ZERO, Code, Number, literal, module
from handgrad.program.lowered import REDUCTIONS, Extent, LoweredValue, UnsupportedLineError

FLOATS = {"float32": "float", "float64": "double"}

LITERALS = frozenset({-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0})
"""Numbers that are written into the code; others are operands, so that another rate or slope is the same code."""

KINDS = {"single": "float", "int": "i64", "bool": "i8", "weak": "double"}
"""How LLVM names one number of a value in memory, by its type; others have the program's."""

FOLDS = {"sum": "fadd", "max": "fmaximum", "min": "fminimum"}
NEUTRAL = {"sum": 0.0, "max": float("-inf"), "min": float("inf"), "add_rows_at": 0.0}
"""What a reduction starts from."""


@dataclass(frozen=True)
class Kernel:
    """A loop's native code, what its arguments are behind rows and columns, and which values it writes to memory."""

    text: str
    operands: tuple[LoweredValue | Extent, ...]
    stored: frozenset[LoweredValue]


class KernelWriter:
    """Writes one loop's code; ``stored`` are the values that are read later, ``sources`` the types of input arrays."""

    def __init__(
        self, loop: FusedLoop, stored: Iterable[LoweredValue], dtype: str, sources: dict[str, str]
    ) -> None:
        self.loop, self.dtype, self.sources = loop, dtype, sources
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
        if not self.loop.has_only_numbers:
            with code.loop(*over_rows) as self.row:
                self.row_start = self.row * self.columns
                for number in range(max(self.passes.values()) + 1):
                    self.rowwise(number)
                    self.columnwise(number)
                self.rowwise(None)
        self.finish_totals()
        return Kernel(module(code.define()), tuple(self.operands), frozenset(self.stored))

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
        for operand, at in zip(value.inputs, self.loop.fits[value].operands, strict=True):
            if at == level and operand.source not in self.loop.levels:
                self.read(operand, at, 1)

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
                self.accumulate(value, as_kind(self.code, self.read(value.inputs[0], "row", 1), "double"))
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
                    self.save(value, result, self.index("full"), mask)
            elif self.loop.levels[value] == "column":
                self.add_at(value, self.read(value.inputs[0], "full", self.lanes), self.column)
            else:
                self.accumulate(value, self.read(value.inputs[0], "full", self.lanes))
        self.registers, self.mask = held, None

    def index(self, level: Level) -> Number:
        if level == "full":
            return self.row_start + self.column
        return {"row": self.row, "column": self.column, "scalar": ZERO}[level]

    def accumulate(self, value: LoweredValue, operand: Number) -> None:
        """Add to a running sum, or compare with the largest so far."""
        total = self.code.recall(self.totals[value], operand.kind, operand.width)
        if operand.width > 1 and self.mask is not None:
            neutral = literal(NEUTRAL[value.operation], operand.kind, operand.width)
            operand = self.code.select(self.mask, operand, neutral)
        self.code.assign(self.totals[value], self.combine(value, total, operand))

    def combine(self, value: LoweredValue, total: Number, operand: Number) -> Number:
        if value.operation in ("max", "min"):
            return self.code.intrinsic("maximum" if value.operation == "max" else "minimum", total, operand)
        return total + operand

    def add_at(self, value: LoweredValue, operand: Number, index: Number) -> None:
        address = self.code.address(self.place_of(value), self.kind, index)
        total = self.code.load(address, self.kind, self.lanes, self.mask)
        self.code.store(self.combine(value, total, operand), address, self.mask)

    # memory

    def save(self, value: LoweredValue, result: Number, index: Number, mask: Number | None = None) -> None:
        if value in self.stored:
            if result.kind == "i1":
                result = self.code.cast("zext", result, "i8")
            self.code.store(result, self.code.address(self.place_of(value), result.kind, index), mask)

    def read(self, operand: LoweredValue, level: Level, width: int) -> Number:
        """Return an operand at a level, from a register or from memory, side by side ``width`` times."""
        value = operand.source
        actual: Level = self.loop.levels.get(value, level)
        key = (value, actual)
        if key not in self.registers and value in self.loop.repeated:
            self.registers[key] = self.apply(value, self.lanes)
        elif key not in self.registers and value.operation == "constant" and value.attribute in LITERALS:
            self.registers[key] = literal(value.attribute, "double")
        elif key not in self.registers:
            wide = self.lanes if actual in ("full", "column") else 1
            self.registers[key] = self.load(value, self.index(actual), wide)
        return self.code.splat(self.registers[key], width)

    def load(self, value: LoweredValue, index: Number, width: int) -> Number:
        """Read a value in memory at an index, as the type it is computed in."""
        is_source = value.operation == "source"
        laid_out = self.sources[value.attribute] if is_source else {**KINDS, "float": self.kind}[value.type]
        kind, _, unsigned = laid_out.partition(" ")
        address = self.code.address(self.place_of(value), kind, index)
        loaded = self.code.load(address, kind, width, self.mask if width > 1 else None)
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
        kind = self.computed_in(value)
        operands = []
        for k, (operand, at) in enumerate(zip(value.inputs, self.loop.fits[value].operands, strict=True)):
            # numbers that are the same everywhere are computed once, whatever they meet
            read = self.read(operand, at, 1 if at == "scalar" else width)
            operands.append(as_kind(self.code, read, "i1" if operation == "where" and k == 0 else kind))
        if (
            operation == "divide" and value.inputs[1].source.type == "weak" and operands[1].width == 1 < width
        ):  # one division, then products; others may be too small for it
            operation, operands[1] = "multiply", self.code.binary("fdiv", literal(1, kind), operands[1])
        try:
            return elementwise(self.code, operation, [self.code.splat(o, width) for o in operands], kind)
        except NotImplementedError as error:
            assert value.line is not None
            raise UnsupportedLineError(value.line, str(error)) from None

    def computed_in(self, value: LoweredValue) -> str:
        operands = value.inputs[1:] if value.operation == "where" else value.inputs
        types = {operand.source.type for operand in operands}
        if value.operation.startswith("logical"):
            return "i1"
        for kind, name in (("float", self.kind), ("single", "float"), ("int", "i64")):
            if kind in types or value.type == kind:
                return name
        return "double" if "weak" in types else "i1"

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
