"""What a program's lines compute, as data: every operation once, with its shape in rows and sizes.

A `Value` is one operation on other values. It is what stands between a line's text and native code: it knows
what is computed and in which shape, and nothing of memory, of order, or of machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from handgrad.program import ProgramLine
from handgrad.rules import Size as ShownSize

Type: TypeAlias = Literal["float", "single", "int", "bool", "weak"]
"""``float`` is the program's dtype, ``single`` float32 in a program of either, ``weak`` a Python number."""


@dataclass(frozen=True)
class Size:
    """How many: a fixed number, or so many for each row of the batch."""

    factor: int
    rows: bool = False

    @classmethod
    def of(cls, shown: ShownSize) -> Size:
        """Read a size as programs show it: ``128``, ``"n"``, ``"7n"``."""
        if isinstance(shown, str):
            return cls(int(shown.removesuffix("n") or 1), rows=True)
        return cls(int(shown))

    def at(self, n: int) -> int:
        """Return the number for a batch of ``n`` rows."""
        return self.factor * n if self.rows else self.factor

    def __mul__(self, other: Size) -> Size:
        if self.rows and other.rows:
            raise NotImplementedError("a size that grows with the square of the batch")
        return Size(self.factor * other.factor, self.rows or other.rows)

    def __str__(self) -> str:
        if not self.rows:
            return str(self.factor)
        return "n" if self.factor == 1 else f"{self.factor}n"


ONE = Size(1)

Shape: TypeAlias = tuple[Size, ...]


def product(shape: Shape) -> Size:
    """Return how many elements a shape has."""
    total = ONE
    for size in shape:
        total = total * size
    return total


@dataclass(frozen=True, eq=False)
class Value:
    """One operation.

    Attributes
    ----------
    operation
        ``load`` (an array that is kept), ``scalar`` (learning_rate, step, seed), ``size``, ``constant``, ``source``
        and ``order`` (the rows of an epoch), a view (``reshape``, ``transpose``), a reduction (``sum``, ``max``,
        ``min``), ``product`` (of matrices), ``take`` (rows by index), ``add_rows_at``, ``uniform``, ``is_class``,
        or an elementwise operation.
    inputs
        The values it is computed from.
    shape, type
        Of the result.
    attribute
        What else it needs: a name, a number, axes.
    line
        The program's line it first stands in, for people; None for what the program is given.
    target
        The kept array that the result overwrites; "" for a new one.
    """

    operation: str
    inputs: tuple[Value, ...]
    shape: Shape
    type: Type
    attribute: Any = None
    line: ProgramLine | None = None
    target: str = ""

    @property
    def size(self) -> Size:
        """How many elements it has."""
        return product(self.shape)

    @property
    def base(self) -> Value:
        """The value whose memory it is seen through: itself, unless it is a reshaped one."""
        return self.inputs[0].base if self.operation == "reshape" else self

    @property
    def source(self) -> Value:
        """What a loop reads for it: its base, or the one number it is filled with."""
        return self.base.inputs[0] if self.base.operation == "broadcast" else self.base

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"<{self.operation} ({shape}) {self.type}>"


GIVEN = frozenset({"load", "scalar", "size", "constant", "source", "order"})
"""Operations that compute nothing: what they name is there when a step begins."""
