"""How fixed values, indices and calls are spelled."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.statements import Slot
from handgrad.checking.forward_trace.symbolic_sizes import Shape, Size
from handgrad.checking.forward_trace.tracer import Operation


class NoTextError(Exception):
    """An operation has no spelling."""


def literal(value: Any, *, symbolic: bool = True) -> str:
    """Return a fixed value as Python writes it; sizes as ``x.shape[0]`` if `symbolic`.

    Examples
    --------
    >>> import numpy as np
    >>> literal(np.float64(0.5)), literal((1, None)), literal(np.array([2, 0]))
    ('0.5', '(1, None)', 'np.array([2, 0])')
    """
    if symbolic and isinstance(value, (Size, Shape)) and value.text:
        return value.text
    if isinstance(value, (np.generic, np.ndarray)):
        if value.ndim == 0:
            return literal(value.item())
        return _array_literal(np.asarray(value))
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if value != value else ("np.inf" if value > 0 else "-np.inf")
    if isinstance(value, (tuple, list)):
        inner = ", ".join(literal(part, symbolic=symbolic) for part in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, (np.generic, float, int))
    ):
        return f'"{np.dtype(value).name}"'
    if isinstance(value, Size):
        return str(int(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if hasattr(value, "dtype"):
        return f'"{value.dtype.name}"'
    raise NoTextError(f"{type(value).__name__} has no short spelling")


def _array_literal(array: Any) -> str:
    """Return a constant array as the call that makes it; what looks drawn by chance has no text."""
    kind = "" if array.dtype == float else f", dtype={literal(array.dtype)}"
    shape = literal(array.shape if array.ndim > 1 else array.shape[0])
    if array.size and np.all(array == array.flat[0]):
        first = array.flat[0].item()
        if first in (0, 1):
            return f"np.{'ones' if first else 'zeros'}({shape}{kind})"
        return f"np.full({shape}, {literal(first)}{kind})"
    if array.ndim == 1 and array.dtype.kind == "i":
        start, stop = array[0], array[0] + len(array)
        if np.array_equal(array, np.arange(start, stop)):
            return f"np.arange({literal(start)}, {stop})" if start else f"np.arange({stop})"
    if array.ndim == 2 and np.array_equal(array, np.eye(*array.shape)):
        return f"np.eye({shape[1:-1] if array.shape[0] != array.shape[1] else array.shape[0]}{kind})"
    if array.size > (64 if array.dtype.kind in "iub" else 16):
        raise NoTextError("a large constant array has no short spelling")
    return f"np.array({array.tolist()!r}{kind if array.dtype.kind not in 'fib' or array.dtype.itemsize < 8 else ''})"


def key_text(key: tuple[Any, ...], names: list[str], *, as_value: bool = False) -> str:
    """Return an index as it is written; `as_value` where slices must be spelled out, as an argument.

    Examples
    --------
    >>> key_text((slice(None), Slot(0)), ["idx"]), key_text((slice(None), 2), [], as_value=True)
    (':, idx', '(slice(None), 2)')
    """
    parts = [_key_part(part, names, as_value) for part in key]
    if not as_value:
        return ", ".join(parts) if parts else "()"
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _key_part(part: Any, names: list[str], as_value: bool) -> str:
    if isinstance(part, Slot):
        return names[part.number]
    if isinstance(part, slice):
        if as_value:
            start, stop, step = part.start, part.stop, part.step
            return "slice(None)" if part == slice(None) else f"slice({start}, {stop}, {step})"
        text = f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"
        return text if part.step is None else f"{text}:{part.step}"
    return "..." if part is Ellipsis else str(part)


def spelled(function: Any, spellings: dict[Any, str]) -> str:
    """Return how the user's module calls a function, "" if that is not known."""
    try:
        return spellings.get(function, "")
    except TypeError:  # unhashable
        return ""


def call_text(
    operation: Operation, names: list[str], spellings: dict[Any, str], *, symbolic: bool = True
) -> str:
    """Return the call that an operation recorded as a whole stands for."""
    template = operation.options.get("template")
    if template is None:
        raise NoTextError(f"{operation.name} has no spelling")
    function = spelled(operation.options["function"], spellings)
    if not function and operation.name.startswith("np."):
        function = operation.name
    if not function:
        raise NoTextError(f"{operation.name} has no spelling")
    args = [_argument(part, names, symbolic) for part in template[0]]
    args += [f"{n}={_argument(part, names, symbolic)}" for n, part in template[1].items()]
    part = operation.options.get("part")
    return f"{function}({', '.join(args)}){'' if part is None else f'[{part}]'}"


def _argument(item: Any, names: list[str], symbolic: bool) -> str:
    if isinstance(item, Slot):
        return names[item.number]
    if isinstance(item, list):
        return f"[{', '.join(_argument(part, names, symbolic) for part in item)}]"
    if isinstance(item, tuple):
        inner = ", ".join(_argument(part, names, symbolic) for part in item)
        return f"({inner},)" if len(item) == 1 else f"({inner})"
    return literal(item, symbolic=symbolic)


def parsed(text: str) -> ast.expr:
    """Return the expression of a text."""
    return ast.parse(text, mode="eval").body
