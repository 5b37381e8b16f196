"""The few operations of a trace that NumPy spells as statements, as functions of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands for an operand within an index or an argument list."""

    number: int


def operand_name(k: int) -> str:
    """Return the letter of operand `k` in texts: a, b, c, v3 and so on."""
    return "abc"[k] if k < 3 else f"v{k}"


def fill(template: Any, operands: tuple[Any, ...] | list[Any]) -> Any:
    """Put the operands back in their slots."""
    if isinstance(template, Slot):
        return operands[template.number]
    if type(template) in (list, tuple):
        return type(template)(fill(part, operands) for part in template)
    if type(template) is dict:
        return {name: fill(part, operands) for name, part in template.items()}
    if isinstance(template, slice):
        return slice(*(fill(part, operands) for part in (template.start, template.stop, template.step)))
    return template


def getitem(a: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return ``a[key]``."""
    return a[fill(key, arrays) if arrays else key]


def setitem(a: Any, value: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return what ``a`` is after ``a[key] = value``."""
    out = a.copy(order="K")
    out[fill(key, arrays) if arrays else key] = value
    return out


def add_at(a: Any, value: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return what ``a`` is after ``np.add.at(a, key, value)``."""
    out = a.copy(order="K")
    np.add.at(out, fill(key, arrays), value)
    return out


def as_strided(a: Any, *args: Any, **options: Any) -> Any:
    """Return a strided view of an array whose entries lie one after the other: nothing outside it is read."""
    return np.lib.stride_tricks.as_strided(np.ascontiguousarray(a), *args, **options)


def call_template(*operands: Any, function: Any, template: Any, part: Any = None) -> Any:
    """Call any function, whose operands are anywhere in its arguments."""
    args, options = fill(template, operands)
    result = function(*args, **options)
    return result if part is None else result[part]
