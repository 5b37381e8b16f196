"""Arithmetic of numbers side by side: the elementwise operations of a program, and changes of type."""

from __future__ import annotations

from handgrad.engines.compiled.elementary import Elementary
from handgrad.engines.compiled.ir import Code, Number, literal

CONDITIONS = {
    "less": ("olt", "slt"),
    "less_equal": ("ole", "sle"),
    "greater": ("ogt", "sgt"),
    "greater_equal": ("oge", "sge"),
    "equal": ("oeq", "eq"),
    "not_equal": ("une", "ne"),
}


def as_kind(code: Code, a: Number, kind: str) -> Number:
    """Return a number as another type."""
    if a.kind == kind:
        return a
    if a.text.startswith("0x") and a.width == 1 and kind == "float" and a.kind == "double":
        return Number(a.text, kind)  # a literal that both types hold
    if a.kind == "i1":
        return code.cast("uitofp" if kind in ("float", "double") else "zext", a, kind)
    if a.kind == "i64" and kind in ("float", "double"):
        return code.cast("sitofp", a, kind)
    if kind == "i64":
        return code.cast("fptosi", a, kind)
    return code.cast("fptrunc" if kind == "float" else "fpext", a, kind)


def elementwise(code: Code, operation: str, operands: list[Number], kind: str) -> Number:
    """Compute an elementwise operation of numbers of one type."""
    width = operands[0].width
    if operation in CONDITIONS:
        condition = CONDITIONS[operation][kind in ("i64", "i1")]  # true is 1, and not -1
        return code.compare(condition.replace("s", "u") if kind == "i1" else condition, *operands)
    if operation == "where":
        return code.select(*operands)
    if operation.startswith("logical"):
        if operation == "logical_not":
            return code.binary("xor", operands[0], literal(-1, "i1", width))
        return code.binary(operation.removeprefix("logical_"), *operands)
    plain = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}
    if operation in plain:
        return code.binary(f"f{plain[operation]}" if kind != "i64" else plain[operation], *operands)
    if kind == "i64":
        raise NotImplementedError(f"{operation} of whole numbers is not compiled")
    if operation in ("exp", "expm1", "tanh", "log", "log1p", "normal_cdf"):
        result: Number = getattr(Elementary(code, kind, width), operation)(operands[0])
        return result
    match operation:
        case "negative":
            return code.emit(f"fneg {operands[0]}", kind, width)
        case "convert" | "broadcast":
            return operands[0]
        case "floor_divide":
            return code.intrinsic("floor", code.binary("fdiv", *operands))
        case "sign":
            one = code.intrinsic("copysign", literal(1, kind, width), operands[0])
            nonzero = code.compare("one", operands[0], literal(0, kind, width))
            return code.select(nonzero, one, operands[0])
    names = {
        "absolute": "fabs", "maximum": "maximum", "minimum": "minimum", "sqrt": "sqrt", "power": "pow",
        "floor": "floor", "ceil": "ceil", "sin": "sin", "cos": "cos", "tan": "tan", "sinh": "sinh", "cosh": "cosh",
        "arctan": "atan", "arcsin": "asin", "arccos": "acos",
    }  # fmt: skip
    return code.intrinsic(names[operation], *operands)
