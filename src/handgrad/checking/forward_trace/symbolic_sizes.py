"""Sizes and shapes that know how they are spelled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class SymbolicSize(int):
    """A size that knows how it is spelled: ``x.shape[0]`` rather than 5.

    Examples
    --------
    >>> half = SymbolicSize(6, "len(x)") // 2
    >>> half, half.text
    (3, 'len(x) // 2')
    """

    text: str
    origin: Any  # the traced integer that it is, or None

    def __new__(cls, value: int, text: str, origin: Any = None) -> SymbolicSize:
        """Make an integer with a spelling."""
        size = super().__new__(cls, value)
        size.text, size.origin = text, origin
        return size


class SymbolicShape(tuple[int, ...]):
    """A shape that knows how it is spelled."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The spelling, ``x.shape``, from that of the first size."""
        first = self[0] if self else 0
        return first.text.removesuffix("[0]") if isinstance(first, SymbolicSize) else ""


def _size_operator(symbol: str, compute: Callable[[int, int], int]) -> tuple[Any, Any]:
    def forwards(self: SymbolicSize, other: Any) -> Any:
        if type(other) is int or type(other) is SymbolicSize:
            text = f"{_bracketed(self)} {symbol} {_bracketed(other)}"
            return SymbolicSize(compute(int(self), int(other)), text)
        return NotImplemented if _goes_first(other) else compute(int(self), other)

    def backwards(self: SymbolicSize, other: Any) -> Any:
        if type(other) is int:
            return SymbolicSize(compute(other, int(self)), f"{other} {symbol} {_bracketed(self)}")
        return NotImplemented if _goes_first(other) else compute(other, int(self))

    return forwards, backwards


def _goes_first(operand: Any) -> bool:
    """Whether an operand takes part in arithmetic before arrays do, as a traced value does."""
    return getattr(operand, "__array_priority__", 0) > 0


def _bracketed(size: int) -> str:
    text = size.text if isinstance(size, SymbolicSize) else str(size)
    return f"({text})" if " " in text else text


for _name, _symbol, _compute in (
    ("add", "+", operator.add),
    ("sub", "-", operator.sub),
    ("mul", "*", operator.mul),
    ("floordiv", "//", operator.floordiv),
):
    _forwards, _backwards = _size_operator(_symbol, _compute)
    setattr(SymbolicSize, f"__{_name}__", _forwards)
    setattr(SymbolicSize, f"__r{_name}__", _backwards)
