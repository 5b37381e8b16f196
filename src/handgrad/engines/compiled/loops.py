"""Loops as native code: one function for each kind of loop, whatever its sizes and whatever its network.

The function takes the address of a list of 64-bit numbers (how many rows and columns, then where each operand and
result lies) and which part of the loop to do: some of the rows, or some of the columns.

    row by row:  what stands once in a row · a pass over the columns · what that pass summed up · the next pass …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from handgrad.engines.compiled.elementary import as_kind, elementwise, uniform
from handgrad.engines.compiled.fusion import Direction, FusedLoop, Level
from handgrad.engines.compiled.ir import LANES, ONE, PART, ZERO, Code, Number, literal, module
from handgrad.program.lowered import REDUCTIONS, LoweredValue, UnsupportedLineError

FLOATS = {"float32": "float", "float64": "double"}

LITERALS = frozenset({-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0})
"""Numbers that are written into the code; others are operands, so that another rate or slope is the same code."""

FOLDS = {"sum": "fadd", "max": "fmaximum", "min": "fminimum"}


@dataclass(frozen=True)
class Operand:
    """Something a loop reads or writes in memory: which value, at which level."""

    value: LoweredValue
    level: Level | Literal["count"]
    written: bool = False


@dataclass(frozen=True)
class Kernel:
    """A loop's native code, and what to call it with.

    Attributes
    ----------
    text
        The code; equal for loops of the same kind.
    operands
        What lies at the addresses it takes.
    stored
        What it writes to memory.
    divided
        Along what it may be divided into parts that are done at the same time.
    """

    text: str
    operands: tuple[Operand, ...]
    stored: frozenset[LoweredValue]
    divided: Direction


def memory_kind(value: LoweredValue, dtype: str, sources: dict[str, str]) -> str:
    """Return how LLVM names one number of a value where it lies in memory."""
    if value.operation == "source":
        return sources[value.attribute]
    kinds = {"float": FLOATS[dtype], "single": "float", "int": "i64", "bool": "i8", "weak": "double"}
    return kinds[value.type]


class Compiler:
    """Writes one loop's code.

    Parameters
    ----------
    loop
        What to compute.
    stored
        Which of its values are read later, and so have to be written to memory.
    dtype
        The program's.
    sources
        How the numbers of each input array lie in memory: ``{"x": "i8 unsigned"}``.
    """

    def __init__(
        self, loop: FusedLoop, stored: Iterable[LoweredValue], dtype: str, sources: dict[str, str]
    ) -> None:
        self.loop, self.dtype, self.sources = loop, dtype, sources
        self.kind = FLOATS[dtype]
        self.lanes = LANES[self.kind]
        self.code = Code()
        self.passes, self.divided = loop.passes, loop.direction
        self.stored = {value for value in loop.values if value in set(stored) or value.target}
        self.stored |= loop.carried
        self.operands: list[Operand] = []
        self.registers: dict[tuple[LoweredValue, Level], Number] = {}
        self.totals: dict[LoweredValue, str] = {}
        self.mask: Number | None = None

    # the code

    def compile(self) -> Kernel:
        """Return the loop's code and operands."""
        code = self.code
        rows, columns = (code.argument(place) for place in (0, 1))
        whole = ZERO, rows
        over_rows, over_columns = (PART, (ZERO, columns)) if self.divided == "rows" else (whole, PART)
        if self.divided == "not":
            over_rows, over_columns = whole, (ZERO, columns)
        self.first, self.last, self.columns = *over_columns, columns
        self.row = self.column = ZERO
        self.start_totals()
        self.scalars()
        if not self.loop.has_only_numbers:
            with code.loop(*over_rows) as self.row:
                self.row_start = code.binary("mul", self.row, columns)
                for number in range(max(self.passes.values()) + 1):
                    self.rowwise(number)
                    self.columnwise(number)
                self.rowwise(None)
        self.finish_totals()
        text = module(code.define())
        return Kernel(text, tuple(self.operands), frozenset(self.stored), self.divided)

    def place_of(self, value: LoweredValue, level: Level, *, written: bool = False) -> str:
        """Return the register that holds where a value lies in memory."""
        place = self.slot(Operand(value, level, written))
        # asked for at the start of the function, whatever is being written
        name = f"%place{place}"
        if not any(line.startswith(f"  {name} =") for line in self.code.start):
            self.code.start += [
                f"  {name}.at = getelementptr i64, ptr %arguments, i64 {place}",
                f"  {name} = load ptr, ptr {name}.at, align 8",
            ]
        return name

    # what is there once

    def scalars(self) -> None:
        """Read the single numbers there are, and compute those that follow from others."""
        for value in self.loop.values:
            self.read_ahead(value, "scalar")
        for value in self.loop.values:
            if self.loop.levels[value] == "scalar" and value.operation not in REDUCTIONS:
                result = self.registers[value, "scalar"] = self.apply(value, "scalar", 1)
                if value in self.stored:
                    self.write(value, "scalar", result, ZERO, None)

    def start_totals(self) -> None:
        """Set to zero what is summed up over the whole loop."""
        for value in self.loop.values:
            level = self.loop.levels[value]
            if value.operation == "add_rows_at":
                self.clear(value, value.shape[0].factor)
            elif value.operation in REDUCTIONS and level == "column":
                self.clear(value, 1)
            elif value.operation in REDUCTIONS and level == "scalar":
                # a number of each row is added up in double: of millions, float32 would lose some
                wide = self.loop.sums_columns(value)
                start = literal(_neutral(value), *((self.kind, self.lanes) if wide else ("double", 1)))
                self.totals[value] = self.code.variable(start)

    def clear(self, value: LoweredValue, times: int) -> None:
        """Write the neutral element at the columns of a result, in so many rows."""
        place = self.place_of(value, "column", written=True)
        rows = self.code.argument(self.slot(Operand(value, "count"))) if times != 1 else ONE
        with self.code.loop(ZERO, rows) as row:
            start = self.code.binary("mul", row, self.columns)
            with self.code.loop(self.first, self.last) as column:
                address = self.code.address(place, self.kind, self.code.binary("add", start, column))
                self.code.store(literal(_neutral(value), self.kind), address)

    def slot(self, operand: Operand) -> int:
        """Return the place of an operand among the arguments."""
        if operand not in self.operands:
            self.operands.append(operand)
        return self.operands.index(operand) + 2

    def finish_totals(self) -> None:
        """Store the sums over the whole loop."""
        for value, variable in self.totals.items():
            kind, width = (self.kind, self.lanes) if self.loop.sums_columns(value) else ("double", 1)
            total = self.code.emit(f"load {Number('', kind, width).type}, ptr {variable}", kind, width)
            total = self.code.fold(FOLDS[value.operation], literal(0, kind), total)
            place = self.place_of(value, "scalar", written=True)
            self.code.store(as_kind(self.code, total, self.kind), place)

    def read_ahead(self, value: LoweredValue, level: Level) -> None:
        """Read what a value needs of a level before the loop that it stands in begins."""
        for operand, at in zip(value.inputs, self.loop.fits[value].operands, strict=True):
            if at == level and operand.source not in self.loop.levels:
                self.read(operand, at, 1)

    # what is there once in a row

    def rowwise(self, number: int | None) -> None:
        """Compute what stands once in a row and is complete before this pass; None: after the last."""
        for value in self.loop.values:
            level = self.loop.levels[value]
            own = level == "row" or (level == "scalar" and value.operation in REDUCTIONS)
            if not own or self.loop.sums_columns(value) or (value, "row") in self.registers:
                continue
            if number is not None and self.passes[value] != number:
                continue
            if level == "scalar":
                if number is None:
                    self.accumulate(value, as_kind(self.code, self.read(value.inputs[0], "row", 1), "double"))
                continue
            self.put(value, self.apply(value, "row", 1))
        if number is None:
            self.registers = {key: held for key, held in self.registers.items() if key[1] == "scalar"}

    def put(self, value: LoweredValue, result: Number) -> None:
        """Keep a row's own value, and store it if it is read later."""
        self.registers[value, "row"] = result
        if value in self.stored:
            self.write(value, "row", result, self.row, None)

    # what is there at every column

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
        summed = [v for v in values if v.operation in REDUCTIONS and self.loop.levels[v] == "row"]
        sums = {value: self._row_total(value) for value in summed}
        self.totals |= sums
        width = literal(self.lanes, "i64")
        count = self.code.binary("sub", self.last, self.first)
        rest = self.code.binary("srem", count, width)
        full = self.code.binary("sub", self.last, rest)
        with self.code.loop(self.first, full, self.lanes) as self.column:
            self.body(values, None)
        with self.code.when(self.code.compare("sgt", rest, ZERO)):
            self.column = full
            lanes = self.code.lanes(self.lanes)
            self.body(values, self.code.compare("slt", lanes, self.code.splat(rest, self.lanes)))
        for value, variable in sums.items():
            wide = self.code.emit(f"load <{self.lanes} x {self.kind}>, ptr {variable}", self.kind, self.lanes)
            del self.totals[value]
            self.put(value, self.code.fold(FOLDS[value.operation], literal(0, self.kind), wide))

    def _row_total(self, value: LoweredValue) -> str:
        start = literal(_neutral(value), self.kind, self.lanes)
        variable = self.code.variable(start)
        self.code.line(f"store {start}, ptr {variable}")
        return variable

    def body(self, values: list[LoweredValue], mask: Number | None) -> None:
        """Compute the values of one pass at the columns from ``self.column`` on."""
        held = dict(self.registers)
        self.mask = mask
        for value in values:
            if value.operation == "add_rows_at":
                self.add_rows(value)
            elif value.operation in REDUCTIONS:
                operand = self.read(value.inputs[0], "full", self.lanes)
                if self.loop.levels[value] == "column":
                    self.add_column(value, operand)
                else:
                    self.accumulate(value, operand)
            else:
                result = self.apply(value, "full", self.lanes)
                self.registers[value, "full"] = result
                if value in self.stored:
                    self.write(value, "full", result, self.index("full"), mask)
        self.registers, self.mask = held, None

    def index(self, level: Level) -> Number:
        """Return the place of the current row and column in a value of this level."""
        match level:
            case "full":
                return self.code.binary("add", self.row_start, self.column)
            case "row":
                return self.row
            case "column":
                return self.column
        return ZERO

    def accumulate(self, value: LoweredValue, operand: Number) -> None:
        """Add to a running sum, or compare with the largest so far."""
        variable = self.totals[value]
        total = self.code.emit(f"load {operand.type}, ptr {variable}", operand.kind, operand.width)
        if operand.width > 1 and self.mask is not None:
            nothing = literal(_neutral(value), operand.kind, operand.width)
            operand = self.code.select(self.mask, operand, nothing)
        self.code.line(f"store {self.combine(value, total, operand)}, ptr {variable}")

    def combine(self, value: LoweredValue, total: Number, operand: Number) -> Number:
        if value.operation in ("max", "min"):
            return self.code.intrinsic("maximum" if value.operation == "max" else "minimum", total, operand)
        return self.code.binary("fadd", total, operand)

    def add_column(self, value: LoweredValue, operand: Number) -> None:
        place = self.place_of(value, "column", written=True)
        address = self.code.address(place, self.kind, self.column)
        total = self.code.load(address, self.kind, self.lanes, self.mask)
        self.code.store(self.combine(value, total, operand), address, self.mask)

    def add_rows(self, value: LoweredValue) -> None:
        """Add this row to the row of the result that its index names."""
        operand = self.read(value.inputs[0], "full", self.lanes)
        row = self.read(value.inputs[1], "row", 1)
        start = self.code.binary("mul", row, self.columns)
        place = self.place_of(value, "column", written=True)
        address = self.code.address(place, self.kind, self.code.binary("add", start, self.column))
        total = self.code.load(address, self.kind, self.lanes, self.mask)
        self.code.store(self.code.binary("fadd", total, operand), address, self.mask)

    # memory

    def write(
        self, value: LoweredValue, level: Level, result: Number, index: Number, mask: Number | None
    ) -> None:
        place = self.place_of(value, level, written=True)
        if result.kind == "i1":
            result = self.code.cast("zext", result, "i8")
        self.code.store(result, self.code.address(place, result.kind, index), mask)

    def read(self, operand: LoweredValue, level: Level, width: int) -> Number:
        """Return an operand at a level, from a register or from memory, side by side ``width`` times."""
        value = operand.source
        made = self.loop.levels.get(value)
        actual: Level = made if made is not None else level
        key = (value, actual)
        if key not in self.registers and value in self.loop.repeated:
            self.registers[key] = self.apply(value, "full", self.lanes)
        elif key not in self.registers:
            self.registers[key] = self.fetch(value, actual, self.lanes if actual in ("full", "column") else 1)
        return self.code.splat(self.registers[key], width)

    def fetch(self, value: LoweredValue, level: Level, width: int) -> Number:
        """Read a value from memory, as the type it is computed in."""
        if value.operation == "constant" and value.attribute in LITERALS:
            return literal(value.attribute, "double")
        return self.load(value, level, self.index(level), width)

    def load(self, value: LoweredValue, level: Level, index: Number, width: int) -> Number:
        """Read what stands at an index of a value in memory."""
        kind = memory_kind(value, self.dtype, self.sources)
        address = self.code.address(self.place_of(value, level), kind.split()[0], index)
        mask = self.mask if width > 1 else None
        return self.converted(self.code.load(address, kind.split()[0], width, mask), kind, value)

    def converted(self, loaded: Number, kind: str, value: LoweredValue) -> Number:
        """Return a number as it lies in memory in the type it is computed in."""
        if value.type == "bool":
            return self.code.compare("ne", loaded, literal(0, "i8", loaded.width))
        if value.type == "int":
            if loaded.kind == "i64":
                return loaded
            return self.code.cast("zext" if kind.endswith("unsigned") else "sext", loaded, "i64")
        if loaded.kind.startswith("i"):
            return self.code.cast("uitofp" if kind.endswith("unsigned") else "sitofp", loaded, self.kind)
        if value.operation == "source":
            return as_kind(self.code, loaded, self.kind)
        return loaded

    # operations

    def apply(self, value: LoweredValue, level: Level, width: int) -> Number:
        """Compute a value from its operands."""
        special: dict[str, Callable[[LoweredValue, int], Number]] = {
            "take": self.take, "uniform": self.uniform, "is_class": self.is_class,
        }  # fmt: skip
        if value.operation in special:
            return special[value.operation](value, width)
        levels = self.loop.fits[value].operands
        # numbers that are the same everywhere are computed once, whatever they meet
        operands = [
            self.read(operand, at, 1 if at == "scalar" else width)
            for operand, at in zip(value.inputs, levels, strict=True)
        ]
        kind = self.computed_in(value)
        operands = [
            as_kind(self.code, o, "i1" if value.operation == "where" and k == 0 else kind)
            for k, o in enumerate(operands)
        ]
        operation = value.operation
        weak = operation == "divide" and value.inputs[1].source.type == "weak"
        if weak and operands[1].width == 1 < width:
            # one division, then products; others may be too small for it
            operation, operands[1] = "multiply", self.code.binary("fdiv", literal(1, kind), operands[1])
        try:
            return elementwise(self.code, operation, [self.code.splat(o, width) for o in operands], kind)
        except NotImplementedError as error:
            assert value.line is not None
            raise UnsupportedLineError(value.line, str(error)) from None

    def computed_in(self, value: LoweredValue) -> str:
        """Return the type in which an operation is done."""
        types = {operand.source.type for operand in value.inputs}
        if value.operation == "where":
            types = {operand.source.type for operand in value.inputs[1:]}
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
        start = self.code.binary("mul", row, self.columns)
        return self.load(table, "column", self.code.binary("add", start, self.column), width)

    def is_class(self, value: LoweredValue, width: int) -> Number:
        """Return 1 at the column that the row's label names, 0 elsewhere."""
        label = self.code.splat(self.read(value.inputs[0], "row", 1), width)
        start = self.code.splat(self.column, width)
        columns = self.code.binary("add", start, self.code.lanes(width))
        return self.code.cast("uitofp", self.code.compare("eq", columns, label), self.kind)

    def uniform(self, value: LoweredValue, width: int) -> Number:
        """Draw numbers in [0, 1)."""
        parts = [as_kind(self.code, self.read(part, "scalar", 1), "i64") for part in value.inputs]
        return uniform(self.code, parts, self.index("full"), width)


def _neutral(value: LoweredValue) -> float:
    """Return what a reduction starts from."""
    return {"max": float("-inf"), "min": float("inf")}.get(value.operation, 0.0)
