"""The lowered form of a program: every operation of its lines once, as data, with its shape in rows and sizes.

It knows nothing of syntax, memory, order or machines: engines and exports start from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from handgrad.program.program import ProgramLine
from handgrad.rules import Size

Type: TypeAlias = Literal["float", "single", "int", "bool", "weak"]
"""``float`` is the program's dtype, ``single`` float32 in a program of either, ``weak`` a Python number."""


class UnsupportedLineError(Exception):
    """A line of a program cannot be lowered, or an engine cannot run it; states which and why.

    Attributes
    ----------
    line
        The line.
    """

    def __init__(self, line: ProgramLine, reason: str) -> None:
        super().__init__(f"`{line}` ({line.layer}): {reason}")
        self.line = line


@dataclass(frozen=True)
class Extent:
    """How long an axis is: a fixed number, or so many for each row of the batch.

    Where something is in memory may move with a loop over time, by ``times`` from each to the next.
    """

    factor: int
    rows: bool = False
    times: int = 0

    @classmethod
    def of(cls, shown: Size) -> Extent:
        """Read a size as programs show it: ``128``, ``"n"``, ``"7n"``."""
        if isinstance(shown, str):
            return cls(int(shown.removesuffix("n") or 1), rows=True)
        return cls(int(shown))

    def at(self, n: int, time: int = 0) -> int:
        """Return the number for a batch of ``n`` rows, in a loop at some time."""
        number = self.factor + self.times * time
        return number * n if self.rows else number

    def __mul__(self, other: Extent) -> Extent:
        if (self.rows and other.rows) or (self.times and other.times):
            raise NotImplementedError("a size that grows with the square of the batch, or of the time")
        times = self.times * other.factor + other.times * self.factor
        return Extent(self.factor * other.factor, self.rows or other.rows, times)

    def __add__(self, other: Extent) -> Extent:
        if NONE in (self, other):
            return other if self == NONE else self
        if self.rows != other.rows:
            raise NotImplementedError("a size that is not proportional to the batch")
        return Extent(self.factor + other.factor, self.rows, self.times + other.times)

    def __floordiv__(self, other: Extent) -> Extent:
        if self.factor % other.factor or (other.rows and not self.rows):
            raise NotImplementedError("sizes that do not divide")
        return Extent(self.factor // other.factor, self.rows and not other.rows)

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.factor} + {self.times} t" if self.times else str(self.factor)
        return "n" if self.factor == 1 else f"{self.factor}n"


NONE, ONE = Extent(0), Extent(1)

Extents: TypeAlias = tuple[Extent, ...]


def product(extents: Extents) -> Extent:
    """Return how many elements a shape has."""
    total = ONE
    for extent in extents:
        total = total * extent
    return total


def broadcast(*shapes: Extents) -> Extents:
    """Return the shape that several are broadcast to."""
    result: list[Extent] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {ONE}
        if len(sizes) > 1:
            raise NotImplementedError(f"sizes {' and '.join(sorted(map(str, sizes)))} in one place")
        result.append(sizes.pop() if sizes else ONE)
    return tuple(reversed(result))


@dataclass(frozen=True)
class View:
    """Where the elements of a value are: in the memory of ``base``, from ``offset`` on, ``strides`` apart along each axis.

    Both count elements; the stride of an axis of one element is 0.
    """

    base: LoweredValue
    offset: Extent
    strides: Extents


def contiguous(shape: Extents) -> Extents:
    """Return the strides of elements one after the other, those of the last axis first."""
    strides, stride = [], ONE
    for size in reversed(shape):
        strides.append(NONE if size == ONE else stride)
        stride = stride * size
    return tuple(reversed(strides))


def reshaped(shape: Extents, strides: Extents, new: Extents) -> Extents | None:
    """Return the strides of the same elements in a new shape, or None where only a copy has it.

    Examples
    --------
    >>> two, three, six = map(Extent, (2, 3, 6))
    >>> print(*reshaped((two, three), contiguous((two, three)), (six,)))
    1
    >>> reshaped((two, three), contiguous((three, two))[::-1], (six,)) is None
    True
    """
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != ONE]
    found: list[Extent] = []
    total, stride = ONE, ONE  # of old axes from the last on that are one axis in memory
    for size in reversed(new):
        if size == ONE:
            found.append(NONE)
            continue
        if total == ONE:
            total, stride = old.pop()
        while total.factor % size.factor or (size.rows and not total.rows):  # more than that axis has
            if not old or old[-1][1] != total * stride:
                return None
            total = total * old.pop()[0]
        found.append(stride)
        total = total // size
        stride = stride * size
    return tuple(reversed(found))


@dataclass(frozen=True, eq=False)
class LoweredValue:
    """One operation on other values.

    ``operation`` is what the program is given (`GIVEN`), a view (`VIEWS`), a reduction (`REDUCTIONS`), ``product`` (of
    matrices, or of stacks of them), ``take`` (rows by index), ``add_rows_at``, ``uniform``, ``is_class``, ``copy``,
    ``concatenate`` (of copies), or elementwise; ``attribute`` what else it needs: a name, a number, axes. ``line`` is the
    first in which it appears, ``target`` the parameter, state or slot that the result overwrites ("" for a new array).

    ``memory`` is an array that loops over time fill, ``filled`` the same once some copies are in it: its inputs are what it
    held before and these copies, its attribute the memory. A copy whose attribute is a `View` is written there.
    """

    operation: str
    inputs: tuple[LoweredValue, ...]
    shape: Extents
    type: Type
    attribute: Any = None
    line: ProgramLine | None = None
    target: str = ""

    @property
    def size(self) -> Extent:
        """How many elements it has."""
        return product(self.shape)

    @cached_property
    def view(self) -> View:
        """Where its elements are: in memory of its own, one after the other, unless it is a view of another value."""
        if self.operation not in VIEWS:
            return View(self, NONE, contiguous(self.shape))
        (whole,) = self.inputs
        base, offset, strides = whole.view.base, whole.view.offset, whole.view.strides
        match self.operation:
            case "transpose":
                strides = tuple(strides[axis] for axis in self.attribute)
            case "slice":
                axis, start, _ = self.attribute
                offset = offset + start * strides[axis]
                kept = NONE if self.shape[axis] == ONE else strides[axis]
                strides = (*strides[:axis], kept, *strides[axis + 1 :])
            case "reshape":
                found = reshaped(whole.shape, strides, self.shape)
                assert found is not None, "a view that would be a copy"
                strides = found
        return View(base, offset, strides)

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are all of its base's, in that order."""
        return self.view.base.size == self.size and self.view.strides == contiguous(self.shape)

    @property
    def base(self) -> LoweredValue:
        """The value whose memory it is a view of, or itself."""
        return self.view.base

    @property
    def source(self) -> LoweredValue:
        """What is read for it elementwise: its base, or the one number it is filled with."""
        return self.base.inputs[0] if self.base.operation == "broadcast" else self.base

    @property
    def matrix(self) -> tuple[LoweredValue, bool]:
        """The value whose memory it is a matrix of, and whether it is transposed."""
        return self.base, self.operation == "transpose"

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<{self.operation} ({shape}) {self.type}>"


GIVEN = frozenset({"load", "scalar", "size", "constant", "table", "source", "order", "memory"})
"""What is there before a step: a parameter, state or slot; learning_rate, step or seed; a number that follows from n;
any other number; an array of such numbers; an array of all rows, and which of its rows are the batch's; memory."""

VIEWS = frozenset({"reshape", "transpose", "slice"})
REDUCTIONS = frozenset({"sum", "max", "min"})


@dataclass(frozen=True, eq=False)
class TimeLoop:
    """The values that are computed again for each time, one time after the other.

    ``carried`` has each view of an array that reads, at another time, what a copy has written; ``before`` each view that
    must be read before a copy of the same time overwrites it, and whether both are the same elements.
    """

    times: int
    is_reversed: bool
    values: frozenset[LoweredValue]
    carried: tuple[tuple[LoweredValue, LoweredValue], ...]
    before: tuple[tuple[LoweredValue, LoweredValue, bool], ...]

    @property
    def order(self) -> range:
        """The times, in order."""
        return range(self.times)[:: -1 if self.is_reversed else 1]


@dataclass(frozen=True)
class Lowered:
    """A program's operations: its values in order, and that of each name when all lines have run.

    ``updates`` are those that only update lines need, ``assigned`` those that overwrite a parameter, state or slot.
    """

    values: tuple[LoweredValue, ...]
    names: Mapping[str, LoweredValue]
    updates: frozenset[LoweredValue]
    assigned: tuple[LoweredValue, ...]
    loops: tuple[TimeLoop, ...] = ()


def users_of(
    results: Iterable[LoweredValue], loops: Iterable[TimeLoop] = ()
) -> dict[LoweredValue, set[LoweredValue]]:
    """Return every value that some results need, they too, each with what it is needed for."""
    users: dict[LoweredValue, set[LoweredValue]] = {}
    carried: dict[
        LoweredValue, list[LoweredValue]
    ] = {}  # what a value reads that was written at another time
    for view, copy in (pair for loop in loops for pair in loop.carried):
        carried.setdefault(view, []).append(copy)
    waiting = list(results)
    while waiting:
        value = waiting.pop()
        if value not in users:
            users[value] = set()
            waiting += [*value.inputs, *carried.get(value, ())]
    for value in users:
        for operand in value.inputs:
            users[operand].add(value)
    return users
