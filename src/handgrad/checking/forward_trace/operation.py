"""One elementary operation of a trace, and those that NumPy spells as statements, as functions of plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Computed entry by entry, operands broadcast, though no ufuncs of NumPy.
_ELEMENTWISE = frozenset(
    ("where", "clip", "round", "nan_to_num", "sinc", "astype", "elementwise", "erf", "erfc")
)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One elementary step: ``values[output] = function(*(values[i] for i in inputs), **options)``.

    `name` is NumPy's (``"exp"``, ``"getitem"``), the key of the table of derivatives; `place` has file, line and
    function of the user's source.
    """

    number: int
    name: str
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    options: dict[str, Any]
    output: int
    place: tuple[str, int, str]

    def run(self, values: Sequence[Any]) -> Any:
        """Compute the output from the values."""
        return self.function(*[values[i] for i in self.inputs], **self.options)

    @property
    def is_elementwise(self) -> bool:
        """Whether each entry is computed from one of each operand, which are broadcast."""
        ufunc = getattr(np, self.name, None) or self.options.get("function")
        return self.name in _ELEMENTWISE or (isinstance(ufunc, np.ufunc) and ufunc.signature is None)


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands for an operand within an index or an argument list."""

    number: int


def operand_name(k: int) -> str:
    """Return the letter of operand `k` in texts: a, b, c, v3 and so on."""
    return "abc"[k] if k < 3 else f"v{k}"


def fill(template: Any, operands: Sequence[Any]) -> Any:
    """Put the operands back in their slots."""
    if isinstance(template, Slot):
        return operands[template.number]
    if type(template) in (list, tuple):
        return type(template)(fill(part, operands) for part in template)
    if type(template) is dict:
        return {name: fill(part, operands) for name, part in template.items()}
    return template


def call_template(
    *operands: Any, function: Callable[..., Any], template: Any, part: int | None = None
) -> Any:
    """Call any function, whose operands are anywhere in its arguments."""
    args, options = fill(template, operands)
    result = function(*args, **options)
    return result if part is None else result[part]


def getitem(a: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return ``a[key]``."""
    return a[fill(key, arrays)]


def setitem(a: Any, value: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return what ``a`` is after ``a[key] = value``."""
    out = a.copy(order="K")
    out[fill(key, arrays)] = value
    return out


def add_at(a: Any, value: Any, *arrays: Any, key: tuple[Any, ...]) -> Any:
    """Return what ``a`` is after ``np.add.at(a, key, value)``."""
    out = a.copy(order="K")
    np.add.at(out, fill(key, arrays), value)
    return out


def as_strided(a: Any, *args: Any, **options: Any) -> Any:
    """Return a strided view of an array whose entries lie one after the other: nothing outside it is read."""
    return np.lib.stride_tricks.as_strided(np.ascontiguousarray(a), *args, **options)
