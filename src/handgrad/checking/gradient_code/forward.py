"""How the operations of a forward pass are spelled in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.checking.adjoint.table import operand_name
from handgrad.checking.forward_trace.spelling import call_text, key_text, literal, spelled
from handgrad.checking.forward_trace.tracer import Operation

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
    "power": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_SIGNS = {"negative": "-a", "positive": "a", "invert": "~a", "logical_not": "~a", "absolute": "np.abs(a)"}
_METHODS = frozenset((
    "sum", "mean", "max", "min", "var", "std", "prod", "cumsum", "cumprod", "argmax", "argmin",
    "argsort", "all", "any", "trace", "repeat", "take",
))  # fmt: skip
_LINALG = frozenset(("solve", "inv", "det", "cholesky", "norm"))


def _options(options: dict[str, Any]) -> str:
    usual = {"keepdims": False, "axis": None}
    shown = {
        name: value
        for name, value in options.items()
        if value is not np._NoValue and value != usual.get(name, np._NoValue)
    }
    return "".join(f", {name}={literal(value)}" for name, value in shown.items())


def forward_text(operation: Operation, values: Sequence[Any], spellings: dict[Any, str]) -> str:
    """Return the text that computes an operation's output from its operands (``a``, ``b``, ``c``, ``v3``, …).

    Raises
    ------
    NoTextError
        When it has no spelling.
    """
    name, options, count = operation.name, operation.options, len(operation.inputs)
    names = [operand_name(k) for k in range(count)]
    if name in _OPERATORS and not options:
        return f"a {_OPERATORS[name]} b"
    if name in _SIGNS:
        return _SIGNS[name]
    if name in _SPELLINGS:
        return _SPELLINGS[name](operation, names)
    if name in _METHODS:
        first = f"({', '.join(names[1:])}" if count > 1 else "("
        rest = _options(options)
        return f"a.{name}{first}{rest if count > 1 else rest[2:]})"
    if name in _LINALG:
        return f"np.linalg.{name}({', '.join(names)}{_options(options)})"
    known = f"np.{name}" if hasattr(np, name) else spelled(operation.function, spellings)
    if known:
        return f"{known}({', '.join(names)}{_options(options)})"
    return call_text(operation, names, spellings)


def _shape_text(operation: Operation, _: list[str]) -> str:
    sizes = ", ".join(literal(n) for n in operation.options["shape"])
    order = f', order="{operation.options["order"]}"' if "order" in operation.options else ""
    return f"a.reshape({sizes or '()'}{order})"


def _transpose_text(operation: Operation, _: list[str]) -> str:
    axes = operation.options["axes"]
    return "a.T" if axes == tuple(range(len(axes)))[::-1] else f"a.transpose({', '.join(map(str, axes))})"


def _setitem_text(operation: Operation, names: list[str]) -> str:
    return f"d = a.copy()\nd[{key_text(operation.options['key'], names[2:])}] = b\nd"


def _add_at_text(operation: Operation, names: list[str]) -> str:
    return f"d = a.copy()\nnp.add.at(d, {key_text(operation.options['key'], names[2:], as_value=True)}, b)\nd"


def _stack_text(operation: Operation, names: list[str]) -> str:
    axis = operation.options["axis"]
    return f"np.stack([{', '.join(names)}]{f', axis={axis}' if axis else ''})"


def _concatenate_text(operation: Operation, names: list[str]) -> str:
    axis = operation.options["axis"]
    return f"np.concatenate([{', '.join(names)}]{f', axis={axis}' if axis != 0 else ''})"


def _draw_text(operation: Operation, _: list[str]) -> str:
    recipe, count = operation.options["recipe"], operation.options["count"]
    calls = []
    for name, args, options in recipe.calls[:count]:
        given = [literal(a) for a in args] + [f"{n}={literal(a)}" for n, a in options.items()]
        calls.append(f"{name}({', '.join(given)})")
    if count == 1:
        return f"{recipe.text}.{calls[0]}"
    return "\n".join([f"p = {recipe.text}", *(f"p.{call}" for call in calls)])


_SPELLINGS: dict[str, Any] = {
    "draw": _draw_text,
    "getitem": lambda operation, names: f"a[{key_text(operation.options['key'], names[1:])}]",
    "setitem": _setitem_text,
    "add_at": _add_at_text,
    "reshape": _shape_text,
    "transpose": _transpose_text,
    "stack": _stack_text,
    "concatenate": _concatenate_text,
    "swapaxes": lambda operation, names: (
        f"a.swapaxes({operation.options['axis1']}, {operation.options['axis2']})"
    ),
    "astype": lambda operation, names: f"a.astype({literal(operation.options['dtype'])})",
    "logabsdet": lambda operation, names: "np.linalg.slogdet(a)[1]",
    "einsum": lambda operation, names: (
        f'np.einsum("{operation.options["subscripts"]}", {", ".join(names)}'
        f"{_options({n: v for n, v in operation.options.items() if n != 'subscripts'})})"
    ),
}
