"""The lowered form of a program: every operation of its lines once, as data, with its shape in rows and sizes.

It knows nothing of syntax, memory, order or machines: engines and exports start from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    """How long an axis is: a fixed number, or so many for each row of the batch."""

    factor: int
    rows: bool = False

    @classmethod
    def of(cls, shown: Size) -> Extent:
        """Read a size as programs show it: ``128``, ``"n"``, ``"7n"``."""
        if isinstance(shown, str):
            return cls(int(shown.removesuffix("n") or 1), rows=True)
        return cls(int(shown))

    def at(self, n: int) -> int:
        """Return the number for a batch of ``n`` rows."""
        return self.factor * n if self.rows else self.factor

    def __mul__(self, other: Extent) -> Extent:
        if self.rows and other.rows:
            raise NotImplementedError("a size that grows with the square of the batch")
        return Extent(self.factor * other.factor, self.rows or other.rows)

    def __str__(self) -> str:
        if not self.rows:
            return str(self.factor)
        return "n" if self.factor == 1 else f"{self.factor}n"


ONE = Extent(1)

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


@dataclass(frozen=True, eq=False)
class LoweredValue:
    """One operation on other values.

    ``operation`` is what the program is given (`GIVEN`), a view (`VIEWS`), a reduction (`REDUCTIONS`), ``product`` (of
    matrices), ``take`` (rows by index), ``add_rows_at``, ``uniform``, ``is_class``, or elementwise; ``attribute`` what else
    it needs: a name, a number, axes. ``line`` is the first in which it appears, ``target`` the parameter, state or slot
    that the result overwrites ("" for a new array).
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

    @property
    def base(self) -> LoweredValue:
        """The value whose memory it is a view of: itself, unless it is reshaped."""
        return self.inputs[0].base if self.operation == "reshape" else self

    @property
    def source(self) -> LoweredValue:
        """What is read for it elementwise: its base, or the one number it is filled with."""
        return self.base.inputs[0] if self.base.operation == "broadcast" else self.base

    @property
    def matrix(self) -> tuple[LoweredValue, bool]:
        """The value whose memory it is a matrix of, and whether it is transposed."""
        return (self.inputs[0].base, True) if self.operation == "transpose" else (self.base, False)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<{self.operation} ({shape}) {self.type}>"


GIVEN = frozenset({"load", "scalar", "size", "constant", "source", "order"})
"""What is there before a step: a parameter, state or slot; learning_rate, step or seed; a number that follows from n;
any other number; an array of all rows, and which of its rows are the batch's."""

VIEWS = frozenset({"reshape", "transpose"})
REDUCTIONS = frozenset({"sum", "max", "min"})


@dataclass(frozen=True)
class Lowered:
    """A program's operations: its values in order, and that of each name when all lines have run.

    ``updates`` are those that only update lines need, ``assigned`` those that overwrite a parameter, state or slot.
    """

    values: tuple[LoweredValue, ...]
    names: Mapping[str, LoweredValue]
    updates: frozenset[LoweredValue]
    assigned: tuple[LoweredValue, ...]


def users_of(results: Iterable[LoweredValue]) -> dict[LoweredValue, set[LoweredValue]]:
    """Return every value that some results need, they too, each with what it is needed for."""
    users: dict[LoweredValue, set[LoweredValue]] = {}
    waiting = list(results)
    while waiting:
        value = waiting.pop()
        if value not in users:
            users[value] = set()
            waiting += value.inputs
    for value in users:
        for operand in value.inputs:
            users[operand].add(value)
    return users
