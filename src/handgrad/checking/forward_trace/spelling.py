"""How values, indices and operations are spelled in NumPy."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from handgrad.checking.forward_trace.operation import Operation, Slot, operand_name
from handgrad.checking.forward_trace.traced_array import SymbolicShape, SymbolicSize

_LONGEST_INTEGERS, _LONGEST_FLOATS = 64, 16  # a longer array in a line of source is data, not code
_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "power": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_TEXTS = {
    "negative": "-a", "positive": "a", "invert": "~a", "logical_not": "~a", "absolute": "np.abs(a)",
    "logabsdet": "np.linalg.slogdet(a)[1]",
}  # fmt: skip
_METHODS = frozenset((
    "sum", "mean", "max", "min", "var", "std", "prod", "cumsum", "cumprod", "argmax", "argmin",
    "argsort", "all", "any", "repeat",
))  # fmt: skip
# Their axis is the last if none is given; other functions take all entries.
_LAST_AXIS = frozenset(("argsort", "sort", "take_along_axis"))
_LINALG = frozenset(("solve", "inv", "det", "cholesky", "norm"))


class NoTextError(Exception):
    """An operation has no spelling."""


def parsed(text: str) -> ast.expr:
    """Return the expression of a text."""
    return ast.parse(text, mode="eval").body


def literal(value: Any, *, symbolic: bool = True) -> str:
    """Return a fixed value as Python writes it; sizes as ``x.shape[0]`` if `symbolic`."""
    if symbolic and isinstance(value, (SymbolicSize, SymbolicShape)) and value.text:
        return value.text
    if isinstance(value, (np.generic, np.ndarray)):
        return literal(value.item()) if value.ndim == 0 else _array_literal(np.asarray(value))
    if isinstance(value, float) and not np.isfinite(value):
        return "np.nan" if value != value else ("np.inf" if value > 0 else "-np.inf")
    if isinstance(value, (tuple, list)):
        return _sequence(value, [literal(part, symbolic=symbolic) for part in value])
    if isinstance(value, SymbolicSize):
        return str(int(value))
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    is_kind = isinstance(value, type) and issubclass(value, (np.generic, float, int))
    kind = np.dtype(value) if is_kind else getattr(value, "dtype", value)
    if isinstance(kind, np.dtype):
        return f'"{kind.name}"'
    raise NoTextError(f"{type(value).__name__} has no short spelling")


def _sequence(value: Sequence[Any], parts: list[str]) -> str:
    inner = ", ".join(parts)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


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
    if array.size > (_LONGEST_INTEGERS if array.dtype.kind in "iub" else _LONGEST_FLOATS):
        raise NoTextError("a large constant array has no short spelling")
    return f"np.array({array.tolist()!r}{kind if array.dtype.kind not in 'fib' or array.dtype.itemsize < 8 else ''})"


def key_text(key: tuple[Any, ...], names: list[str], *, as_value: bool = False) -> str:
    """Return an index as it is written; `as_value` where slices must be spelled out, as an argument."""
    parts = [_key_part(part, names, as_value) for part in key]
    if not as_value:
        return ", ".join(parts) if parts else "()"
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _key_part(part: Any, names: list[str], as_value: bool) -> str:
    if isinstance(part, Slot):
        return names[part.number]
    if isinstance(part, slice):
        if as_value:
            whole = part == slice(None)
            return "slice(None)" if whole else f"slice({part.start}, {part.stop}, {part.step})"
        text = f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"
        return text if part.step is None else f"{text}:{part.step}"
    return "..." if part is Ellipsis else str(part)


def forward_text(operation: Operation, spellings: dict[Any, str], *, symbolic: bool = True) -> str:
    """Return the text that computes an operation's output from its operands; a `NoTextError` if there is none."""
    name, given = operation.name, operation.options
    names = [operand_name(k) for k in range(len(operation.inputs))]
    if name in _OPERATORS and not given:
        return f"a {_OPERATORS[name]} b"
    if name in _TEXTS:
        return _TEXTS[name]
    if name in _SPELLINGS:
        return _SPELLINGS[name](given, names)
    if "template" in given:
        return _call_text(operation, names, spellings, symbolic)
    usual = {"keepdims": False} if name in _LAST_AXIS else {"keepdims": False, "axis": None}
    options = [
        f"{key}={literal(value, symbolic=symbolic)}"
        for key, value in given.items()
        if value is not np._NoValue and value != usual.get(key, np._NoValue)
    ]
    if name in _METHODS:
        return f"a.{name}({', '.join(names[1:] + options)})"
    known = f"np.{name}" if hasattr(np, name) or "." in name else spellings.get(operation.function, "")
    known = f"np.linalg.{name}" if name in _LINALG else known
    if not known:
        raise NoTextError(f"{name} has no spelling")
    return f"{known}({', '.join(names + options)})"


def _call_text(operation: Operation, names: list[str], spellings: dict[Any, str], symbolic: bool) -> str:
    """Return the call that an operation recorded as a whole stands for."""
    (args, options), part = operation.options["template"], operation.options.get("part")
    function = spellings.get(operation.options["function"], "")
    function = function or (operation.name if operation.name.startswith("np.") else "")
    if not function:
        raise NoTextError(f"{operation.name} has no spelling")
    given = [_argument(a, names, symbolic) for a in args]
    given += [f"{n}={_argument(a, names, symbolic)}" for n, a in options.items()]
    return f"{function}({', '.join(given)}){'' if part is None else f'[{part}]'}"


def _argument(item: Any, names: list[str], symbolic: bool) -> str:
    if isinstance(item, Slot):
        return names[item.number]
    if type(item) in (tuple, list):
        return _sequence(item, [_argument(part, names, symbolic) for part in item])
    return literal(item, symbolic=symbolic)


def _reshape_text(given: dict[str, Any], _: list[str]) -> str:
    sizes = ", ".join(literal(n) for n in given["shape"])
    order = f', order="{given["order"]}"' if "order" in given else ""
    return f"a.reshape({sizes or '()'}{order})"


def _transpose_text(given: dict[str, Any], _: list[str]) -> str:
    axes = given["axes"]
    return "a.T" if axes == tuple(range(len(axes)))[::-1] else f"a.transpose({', '.join(map(str, axes))})"


def _expand_dims_text(given: dict[str, Any], _: list[str]) -> str:
    key = ["None" if k in given["axis"] else ":" for k in range(max(given["axis"]) + 1)]
    return f"a[{', '.join(key)}]"


def _joined_text(function: str, given: dict[str, Any], names: list[str]) -> str:
    axis = f", axis={given['axis']}" if given["axis"] != 0 else ""
    return f"np.{function}([{', '.join(names)}]{axis})"


def _einsum_text(given: dict[str, Any], names: list[str]) -> str:
    options = [f"{n}={literal(v)}" for n, v in given.items() if n != "subscripts"]
    subscripts = f'"{given["subscripts"]}"'
    return f"np.einsum({', '.join([subscripts, *names, *options])})"


_SPELLINGS: dict[str, Any] = {
    "draw": lambda given, names: given["text"],
    "getitem": lambda given, names: f"a[{key_text(given['key'], names[1:])}]",
    "setitem": lambda given, names: f"d = a.copy()\nd[{key_text(given['key'], names[2:])}] = b\nd",
    "add_at": lambda given, names: (
        f"d = a.copy()\nnp.add.at(d, {key_text(given['key'], names[2:], as_value=True)}, b)\nd"
    ),
    "reshape": _reshape_text,
    "transpose": _transpose_text,
    "expand_dims": _expand_dims_text,
    "swapaxes": lambda given, names: f"a.swapaxes({given['axis1']}, {given['axis2']})",
    "stack": partial(_joined_text, "stack"),
    "concatenate": partial(_joined_text, "concatenate"),
    "astype": lambda given, names: f"a.astype({literal(given['dtype'])})",
    "einsum": _einsum_text,
}
