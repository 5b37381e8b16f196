"""Lowering loops over time: their lines once, as operations on what one time reads and writes.

An array that a loop fills is one piece of memory. Each line makes a version of it (``filled``), so that what reads it
afterwards needs that line; what the line has written is read from the value itself, in the same time. Where a line reads or
writes at time t moves with t (`Extent.times`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from handgrad.program.functions import whole
from handgrad.program.lowered import GIVEN, Extent, LoweredValue, TimeLoop, View
from handgrad.program.program import ProgramLine
from handgrad.program.windows import Windows

Index = tuple[Any, ...]


@dataclass
class Filling:
    """An array while a loop fills it.

    ``start`` is the version before the loop, ``reads`` the views of it that lines read, with their indices; ``stores``
    what lines have written: where, the value, and the copy that is in memory.
    """

    memory: LoweredValue
    start: LoweredValue
    reads: list[tuple[Index, LoweredValue]] = field(default_factory=list)
    stores: list[tuple[Index, LoweredValue, LoweredValue]] = field(default_factory=list)


class TimeLoops(Windows):
    """Loops over time."""

    names: dict[str, LoweredValue]
    fixed: dict[str, Any]

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self.filling: dict[str, Filling] = {}
        self.loops: list[TimeLoop] = []

    def expression(self, node: ast.expr) -> Any:
        """Return what a piece of a line's syntax tree is; see `Lowering`."""
        raise NotImplementedError

    def lower_loop(self, block: Sequence[ProgramLine]) -> None:
        """Lower the lines of a loop, each once."""
        self.line = block[0]
        (header,) = ast.parse(f"{block[0].loop}: pass").body
        assert isinstance(header, ast.For)
        assert isinstance(header.iter, ast.Call)
        assert isinstance(header.target, ast.Name)
        is_reversed = ast.unparse(header.iter.func) == "reversed"
        counted: Any = header.iter.args[0] if is_reversed else header.iter
        self.times = times = whole(self.expression(counted.args[0]))
        variable = header.target.id
        self.fixed[variable] = Extent(0, times=1)
        for name in dict.fromkeys(line.target for line in block):
            self.filling[name] = self.filled_from_here(name, block, times, is_reversed=is_reversed)
            self.names[name] = self.filling[name].start
        known, first = dict(self.known), len(self.values)
        for line in block:
            self.line = line
            self.store(line)
        made = self.repeated(first)
        self.known = known | {key: value for key, value in self.known.items() if value.operation in GIVEN}
        fillings = self.filling.values()
        carried = [pair for each in fillings for pair in _carried(each, is_reversed=is_reversed)]
        before = [pair for each in fillings for pair in _before(each, made)]
        self.loops.append(TimeLoop(times, is_reversed, frozenset(made), tuple(carried), tuple(before)))
        for name, each in self.filling.items():
            copies = (copy for _, _, copy in each.stores)
            self.names[name] = self.version(each, self.names[name], *copies)
        self.filling = {}
        del self.fixed[variable]

    def repeated(self, first: int) -> list[LoweredValue]:
        """Return the values of a loop that change with time, and put the others before it."""
        starts = {each.start for each in self.filling.values()}
        changing: dict[LoweredValue, None] = {}
        for value in self.values[first:]:
            moves = value.operation == "slice" and value.attribute[1].times
            fills = value.operation == "filled" or isinstance(value.attribute, View)
            if moves or fills or any(v in changing or v in starts for v in value.inputs):
                changing[value] = None
        self.values[first:] = [*(v for v in self.values[first:] if v not in changing), *changing]
        return list(changing)

    def product(self, left: LoweredValue, right: LoweredValue) -> LoweredValue:
        """Multiply matrices; a parameter that is transposed is so once, before a loop."""
        if self.filling and right.operation == "transpose" and right.base.operation == "load":
            right = self.copy(right)
        return super().product(left, right)

    def primitive_truncated(self, v: LoweredValue, t: Extent, every: int | None) -> LoweredValue:
        """Multiply by 0 at the first time of each segment, and by 1 at the others."""
        if every is None:
            return v
        kept = self.table((np.arange(self.times) % every > 0).astype(self.dtype))
        return self.elementwise("multiply", v, self.moving(kept, 0, t))

    def version(self, filling: Filling, *parts: LoweredValue) -> LoweredValue:
        """Return an array with some parts in it."""
        memory = filling.memory
        return self.value("filled", parts, memory.shape, memory.type, memory)

    def filled_from_here(
        self, name: str, block: Sequence[ProgramLine], times: int, *, is_reversed: bool
    ) -> Filling:
        """Return an array that a loop is to fill, with what it holds before where the loop does not write first."""
        given = self.names[name]
        self.fixed.pop(name, None)
        if given.type != "float":
            raise NotImplementedError("a loop that fills an array of other numbers than the program's")
        memory = self.value("memory", (), given.shape, given.type, (name, len(self.loops)))
        filling = Filling(memory, memory)
        parts = []
        for start, stop in self.unwritten(name, block, times, is_reversed=is_reversed):
            index = slice(None), slice(start, stop)
            place = self.indexed(memory, index)
            part = self.indexed(given, index)
            parts.append(self.value("copy", (part,), part.shape, part.type, place.view))
        filling.start = self.version(filling, memory, *parts)
        return filling

    def unwritten(
        self, name: str, block: Sequence[ProgramLine], times: int, *, is_reversed: bool
    ) -> Iterator[tuple[int, int]]:
        """Yield the times that a loop does not write before it reads them: all, where that is not plain to see."""
        length = self.names[name].shape[1].factor
        written: dict[int, set[Any]] = {}  # by how far from t: what of the next axis
        at: dict[int, int] = {}
        reads: list[tuple[int, Any]] = []
        for number, line in enumerate(block):
            nodes = [node for node in ast.walk(line.tree) if getattr(node, "id", "") == name]
            parts = [node for node in ast.walk(line.tree) if getattr(node, "value", None) in nodes]
            indices = [self.index(part.slice) for part in parts if isinstance(part, ast.Subscript)]
            reads += [(number, index) for index in (*indices, *[None] * (len(nodes) - len(indices)))]
            if line.target == name:
                index = self.written_at(line)
                if line.operator != "=":
                    reads.append((number, index))
                elif (shift := _shift(index)) is not None:
                    written.setdefault(shift, set()).update(self.parts(name, index))
                    at[shift] = number
        every = set(range(self.names[name].shape[2].factor)) if len(self.names[name].shape) > 2 else {0}
        whole_times = [shift for shift, parts in written.items() if parts >= every]
        if len(whole_times) != 1 or any(read is None for _, read in reads):
            yield 0, length
            return
        (first,) = whole_times
        for number, read in reads:
            shift = _shift(read)
            later = shift is not None and (shift > first if is_reversed else shift < first)
            if not later and not (shift == first and number > at[first]):
                yield 0, length
                return
        if first > 0:
            yield 0, first
        if first + times < length:
            yield first + times, length

    def parts(self, name: str, index: Index) -> set[int]:
        """Return which places of the axis behind time an index names."""
        size = self.names[name].shape[2].factor if len(self.names[name].shape) > 2 else 1
        if len(index) == 2:
            return set(range(size))
        part = index[2]
        if len(index) > 3:
            return set()
        return set(range(size)[part]) if isinstance(part, slice) else {range(size)[part]}

    def index(self, node: ast.expr) -> Index:
        """Return the parts of an index, of which one may move with time."""
        index = self.expression(node)
        return index if isinstance(index, tuple) else (index,)

    def written_at(self, line: ProgramLine) -> Index:
        """Return where a line of a loop writes."""
        place = ast.parse(line.place, mode="eval").body
        assert isinstance(place, ast.Subscript)
        return self.index(place.slice)

    def store(self, line: ProgramLine) -> None:
        """Lower a line of a loop: compute, and write a part of an array."""
        filling, index = self.filling[line.target], self.written_at(line)
        value = self.as_value(self.expression(line.tree))
        if line.operator == "+=":
            value = self.elementwise("add", self.read_filled(line.target, index), value)
        place = self.indexed(filling.memory, index)
        if value.shape != place.shape:
            raise NotImplementedError("a part of an array that is filled with one of another shape")
        copy = self.value("copy", (value,), value.shape, value.type, place.view)
        filling.stores.append((index, value, copy))
        self.names[line.target] = self.version(filling, self.names[line.target], copy)

    def read_filled(self, name: str, index: Index) -> LoweredValue:
        """Return a part of an array that the loop fills: what a line of this time has written there, or what is in memory."""
        filling = self.filling[name]
        for written, value, _ in reversed(filling.stores):
            if index[: len(written)] == written:
                kept = sum(isinstance(part, slice) for part in written)
                return self.indexed(value, (*[slice(None)] * kept, *index[len(written) :]))
            if not _apart(written, index):
                return self.indexed(self.names[name], index)
        view = self.indexed(filling.start, index)
        filling.reads.append((index, view))
        return view


def _shift(index: Index) -> int | None:
    """Return how far from t the time is that an index names, None where it names no single one."""
    if len(index) < 2 or index[0] != slice(None) or not isinstance(index[1], Extent) or index[1].times != 1:
        return None
    return index[1].factor


def _apart(one: Index, other: Index) -> bool:
    """Whether two indices name other places at every time."""
    for a, b in zip(one, other, strict=False):
        if isinstance(a, Extent) and isinstance(b, Extent) and a.times == b.times and a != b:
            return True
        if isinstance(a, int) and isinstance(b, int) and a != b and (a < 0) == (b < 0):
            return True
    return False


def _carried(filling: Filling, *, is_reversed: bool) -> Iterator[tuple[LoweredValue, LoweredValue]]:
    """Yield each copy that is written at one time with each view that may read it at a later one."""
    for written, _, copy in filling.stores:
        for read, view in filling.reads:
            shifts = _shift(written), _shift(read)
            if shifts[0] is not None and shifts[1] is not None:
                later = shifts[0] < shifts[1] if is_reversed else shifts[0] > shifts[1]
                if not later:
                    continue
            yield view, copy


def _before(
    filling: Filling, made: Sequence[LoweredValue]
) -> Iterator[tuple[LoweredValue, LoweredValue, bool]]:
    """Yield each view that must be read before a copy overwrites it, and whether it is of the very same elements."""
    place = {value: number for number, value in enumerate(made)}
    for written, _, copy in filling.stores:
        for read, view in filling.reads:
            if not _apart(written, read) and place.get(view, -1) < place[copy]:
                yield view, copy, written == read
