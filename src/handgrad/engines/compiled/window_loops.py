"""Loops over windows: what is computed of each entry of a window, and then added up, compared, stored, or put back.

window by window:  what the whole window is needed for (its largest) · each place · what the places come to together
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handgrad.engines.compiled.elementwise import FLOATS, KINDS, LITERALS, NEUTRAL, apply_elementwise, combine
from handgrad.engines.compiled.ir import BYTES, LANES, ZERO, Code, Number, literal, module
from handgrad.engines.compiled.loops import Kernel
from handgrad.engines.compiled.window_steps import WindowLoop
from handgrad.program.lowered import ONE, REDUCTIONS, Extent, Extents, LoweredValue, UnsupportedLineError

MOST_WRITTEN_OUT = 16
"""Windows of so many places are written out, larger ones are loops."""


class WindowLoopWriter:
    """Writes one loop over windows."""

    def __init__(self, loop: WindowLoop, dtype: str) -> None:
        self.loop, self.kind, self.code = loop, FLOATS[dtype], Code()
        g = self.geometry = loop.geometry
        # places side by side are one run of numbers where nothing looks at one place alone
        joined = g.dilation == 1 and not g.padding[1] and self.is_plain
        self.places, self.run = ((g.size[0], 1), g.size[1] * g.channels) if joined else (g.size, g.channels)
        self.width = min(LANES[self.kind], 1 << (self.run - 1).bit_length())
        self.operands: list[LoweredValue | Extent] = []
        self.largest: dict[LoweredValue, tuple[str, str]] = {}

    @property
    def is_plain(self) -> bool:
        """Whether numbers are only moved, or added up where windows overlap."""
        operand = self.loop.operand
        return self.loop.value.operation not in REDUCTIONS and (
            operand.operation == "windows" or operand not in self.loop.inside
        )

    def write(self) -> Kernel:
        """Go through images, windows, and vectors of channels."""
        code, (p, q) = self.code, self.geometry.counts
        result = self.array(self.loop.value)
        images, channels = code.part, (ZERO, self.whole(self.run))
        if self.loop.sums_windows:  # is divided by channels
            self.operands.append(self.loop.images)
            images, channels = (ZERO, code.argument(len(self.operands) - 1)), code.part
            self.clear_sums(result)
        with code.loop(*images) as self.image:
            if self.loop.value.operation == "add_windows":
                self.clear(result)
            with code.loop(ZERO, self.whole(p)) as self.p, code.loop(ZERO, self.whole(q)) as self.q:
                self.window = (self.image * p + self.p) * q + self.q
                for condition, at_border in self.cases():
                    self.is_at_border = at_border
                    with code.when(condition), code.loop(*channels, self.width) as self.column:
                        left = code.splat(self.whole(self.run) - self.column, self.width)
                        self.mask = code.lanes(self.width) < left if self.run % self.width else None
                        self.one_window(result)
        return Kernel(module(code.define()), tuple(self.operands), frozenset({self.loop.value}))

    def cases(self) -> list[tuple[Number, bool]]:
        """Return when a window lies in the image, and when it may go beyond: only then is each place looked at."""
        g = self.geometry
        if not any(g.padding):
            return [(literal(1, "i1"), False)]
        inside = literal(1, "i1", 1, self.code)
        for number, around, size, length in zip((self.p, self.q), g.padding, g.size, g.sizes, strict=True):
            start = number * g.stride - around
            fits = start + g.dilation * (size - 1) < self.whole(length)
            inside = inside & (start >= self.whole(0)) & fits
        return [(inside, False), (~inside, True)]

    def clear_sums(self, result: str) -> None:
        """Set the sums of some channels to zero, at each place."""
        with (
            self.code.loop(ZERO, self.whole(self.places[0] * self.places[1])) as place,
            self.code.loop(*self.code.part) as channel,
        ):
            address = self.code.address(result, self.kind, place * self.run + channel)
            self.code.store(literal(0, self.kind), address)

    def clear(self, result: str) -> None:
        """Set one image to zero."""
        size = self.geometry.sizes[0] * self.geometry.sizes[1] * self.geometry.channels
        start = Number(self.code.address(result, self.kind, self.image * size), "ptr")
        count = literal(size * BYTES[self.kind], "i64")
        self.code.external("@llvm.memset.p0.i64", "void", start, literal(0, "i8"), count, literal(0, "i1"))

    def one_window(self, result: str) -> None:
        """Compute the channels of one window from ``self.column`` on."""
        code, value, operand = self.code, self.loop.value, self.loop.operand
        for mask in (v for v in self.loop.inside if v.operation == "first_largest"):
            largest = self.folded("max", mask.inputs[0])
            found = code.variable(literal(0, "i1", self.width))
            code.assign(found, literal(0, "i1", self.width))
            self.largest[mask] = largest, found
        if self.loop.sums_windows:
            for place in self.each_place():
                self.add(self.compute(operand, place), result, place.number * self.run + self.column)
            return
        if value.operation in REDUCTIONS:
            total = code.recall(self.folded(value.operation, operand), self.kind, self.width)
            code.store(
                total, code.address(result, self.kind, self.window * self.run + self.column), self.mask
            )
            return
        for place in self.each_place():
            computed = self.compute(operand, place)
            if value.operation != "add_windows":
                code.store(computed, code.address(result, computed.kind, self.place_index(place)), self.mask)
                continue
            with code.when(place.exists):
                self.add(computed, result, place.index)

    def add(self, computed: Number, result: str, index: Number) -> None:
        address = self.code.address(result, self.kind, index)
        before = self.code.load(address, self.kind, self.width, self.mask)
        self.code.store(before + computed, address, self.mask)

    def folded(self, operation: str, operand: LoweredValue) -> str:
        """Return the variable for the sum, or the largest or smallest, of all places."""
        start = literal(NEUTRAL[operation], self.kind, self.width)
        variable = self.code.variable(start)
        self.code.assign(variable, start)
        for place in self.each_place():
            total = self.code.recall(variable, self.kind, self.width)
            self.code.assign(variable, combine(self.code, operation, total, self.compute(operand, place)))
        return variable

    # places

    def each_place(self) -> Iterator[_Place]:
        """Go through the places of a window; what is written at each is written once or repeated."""
        rows, columns = self.places
        if rows * columns <= MOST_WRITTEN_OUT:
            for number in range(rows * columns):
                yield self.place(self.whole(number // columns), self.whole(number % columns))
        else:
            with (
                self.code.loop(ZERO, self.whole(rows)) as down,
                self.code.loop(ZERO, self.whole(columns)) as across,
            ):
                yield self.place(down, across)

    def place(self, down: Number, across: Number) -> _Place:
        code, g = self.code, self.geometry
        h = self.p * g.stride + down * g.dilation - g.padding[0]
        v = self.q * g.stride + across * g.dilation - g.padding[1]
        index = ((self.image * g.sizes[0] + h) * g.sizes[1] + v) * g.channels + self.column
        exists = literal(1, "i1")
        if self.is_at_border:
            exists = code.compare("ult", h, self.whole(g.sizes[0])) & code.compare(
                "ult", v, self.whole(g.sizes[1])
            )
        return _Place(down * self.places[1] + across, index, exists)

    def whole(self, number: int) -> Number:
        return literal(number, "i64", 1, self.code)

    def place_index(self, place: _Place) -> Number:
        """Return where a place's number is, in an array of all places of all windows."""
        return (self.window * (self.places[0] * self.places[1]) + place.number) * self.run + self.column

    # values

    def compute(self, value: LoweredValue, place: _Place) -> Number:
        """Return a value at a place, or read it."""
        code = self.code
        if value not in self.loop.inside:
            return code.splat(self.read(value, place), self.width)
        if value.operation == "windows":
            fill = literal(value.attribute[1], self.kind, self.width)
            index = code.select(place.exists, place.index, self.column)
            address = code.address(self.array(value.inputs[0].base), self.kind, index)
            return code.select(place.exists, code.load(address, self.kind, self.width, self.mask), fill)
        if value.operation == "first_largest":
            largest, found = self.largest[value]
            before = code.recall(found, "i1", self.width)
            is_largest = self.compute(value.inputs[0], place).equals(
                code.recall(largest, self.kind, self.width)
            )
            code.assign(found, before | is_largest)
            return is_largest & ~before
        operands = (
            self.read(operand, place) if operand not in self.loop.inside else self.compute(operand, place)
            for operand in value.inputs
        )
        return apply_elementwise(code, value, operands, self.kind, self.width)

    def read(self, value: LoweredValue, place: _Place) -> Number:
        """Return what a place needs of a value in memory; one number stays one."""
        source, whole = value.source, self.loop.operand.shape
        if source.operation == "constant" and source.attribute in LITERALS:
            return literal(source.attribute, "double")
        shape = value.shape if source is value.base else source.shape
        around, has_places, has_channels = self.axes(value, shape, whole)
        kind, array = {**KINDS, "float": self.kind}[source.type], self.array(source)
        index = self.window if around else self.whole(0)
        if has_places:
            index = index * (self.places[0] * self.places[1]) + place.number
        if has_channels:
            index = index * self.run + self.column
        width, mask = (self.width, self.mask) if has_channels else (1, None)
        found = self.code.load(self.code.address(array, kind, index), kind, width, mask)
        return found.differs(0) if value.type == "bool" else found

    def axes(self, value: LoweredValue, shape: Extents, whole: Extents) -> tuple[bool, bool, bool]:
        """Return whether a value in memory has the axes of the windows, of their places and of the channels."""
        aligned = (ONE,) * (len(whole) - len(shape)) + shape
        parts = [(aligned[:-2], whole[:-2]), (aligned[-2:-1], whole[-2:-1]), (aligned[-1:], whole[-1:])]
        single = [all(size == ONE for size in mine) for mine, _ in parts]
        fits = all(one or mine == all_ for one, (mine, all_) in zip(single, parts, strict=True))
        if not fits or value.source.operation == "source" or not value.is_contiguous:
            assert self.loop.value.line is not None
            raise UnsupportedLineError(self.loop.value.line, f"{value!r} beside windows is not compiled")
        return not single[0], not single[1], not single[2]

    def array(self, value: LoweredValue) -> str:
        """Return the register that holds the address of a value, read at the start of the function."""
        if value not in self.operands:
            self.operands.append(value)
        slot = self.operands.index(value)
        name = f"%place{slot}"
        read = f"  {name}.at = getelementptr i64, ptr %arguments, i64 {slot}"
        if read not in self.code.start:
            self.code.start += [read, f"  {name} = load ptr, ptr {name}.at, align 8"]
        return name


@dataclass(frozen=True)
class _Place:
    """A place of a window: its number, where it is in the array of images, and whether it is there or in the padding."""

    number: Number
    index: Number
    exists: Number
