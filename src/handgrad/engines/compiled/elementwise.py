"""What all kinds of loops do with a value: its types, one elementwise operation, one step of a reduction."""

from __future__ import annotations

from collections.abc import Iterable

from handgrad.engines.compiled.elementary import as_kind, elementwise
from handgrad.engines.compiled.ir import Code, Number, literal
from handgrad.program.lowered import LoweredValue, UnsupportedLineError

FLOATS = {"float32": "float", "float64": "double"}

LITERALS = frozenset({-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0})
"""Numbers that are written into the code; others are operands, so that another rate or slope is the same code."""

KINDS = {"single": "float", "int": "i64", "bool": "i8", "weak": "double"}
"""How LLVM names one number of a value in memory, by its type; others have the program's."""

FOLDS = {"sum": "fadd", "max": "fmaximum", "min": "fminimum"}
NEUTRAL = {"sum": 0.0, "max": float("-inf"), "min": float("inf"), "add_rows_at": 0.0}
"""What a reduction starts from."""


def apply_elementwise(
    code: Code, value: LoweredValue, operands: Iterable[Number], kind: str, width: int
) -> Number:
    """Compute an elementwise operation; ``kind`` is the program's type, operands of one number are the same everywhere."""
    operation, computed_in = value.operation, _computed_in(value, kind)
    operands = [
        as_kind(code, operand, "i1" if operation == "where" and place == 0 else computed_in)
        for place, operand in enumerate(operands)
    ]
    if (
        operation == "divide" and value.inputs[1].source.type == "weak" and operands[1].width == 1 < width
    ):  # one division, then products; others may be too small for it
        operation, operands[1] = "multiply", code.binary("fdiv", literal(1, computed_in), operands[1])
    try:
        return elementwise(code, operation, [code.splat(o, width) for o in operands], computed_in)
    except NotImplementedError as error:
        assert value.line is not None
        raise UnsupportedLineError(value.line, str(error)) from None


def combine(code: Code, reduction: str, total: Number, operand: Number) -> Number:
    """Add to a running sum, or compare with the largest or smallest so far."""
    if reduction in ("max", "min"):
        return code.intrinsic("maximum" if reduction == "max" else "minimum", total, operand)
    return total + operand


def _computed_in(value: LoweredValue, kind: str) -> str:
    """Return the type in which an operation is computed."""
    operands = value.inputs[1:] if value.operation == "where" else value.inputs
    types = {operand.source.type for operand in operands}
    if value.operation.startswith("logical"):
        return "i1"
    for among, name in (("float", kind), ("single", "float"), ("int", "i64")):
        if among in types or value.type == among:
            return name
    return "double" if "weak" in types else "i1"
