"""Lowering a program: each line's syntax tree to operations on values.

What cannot be lowered raises `UnsupportedLineError` with the line and the reason.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from handgrad.program.lowered import ONE, Extent, Lowered, LoweredValue, Type, UnsupportedLineError
from handgrad.program.operations import Operations
from handgrad.program.program import Program, ProgramLine

ARITHMETIC: dict[type[ast.AST], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.Pow: ("power", operator.pow),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
}

COMPARISONS: dict[type[ast.AST], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}

LOGIC: dict[type[ast.AST], str] = {ast.BitAnd: "logical_and", ast.BitOr: "logical_or"}

NO_MATHEMATICS = (
    NotImplementedError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError
)  # fmt: skip
"""What lowering an expression raises that is no such mathematics."""


def lower(program: Program) -> Lowered:
    """Lower a program; raises `UnsupportedLineError` at the first line that cannot be."""
    lowering = _Lowering(program)
    for line in program.lines:
        lowering.lower_line(line)
    return Lowered(
        tuple(lowering.values), lowering.names, frozenset(lowering.updates), tuple(lowering.assigned)
    )


class _Lowering(Operations):
    """The values of the names after the lines lowered so far, and those that update lines make."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.names: dict[str, LoweredValue] = {}
        self.assigned: list[LoweredValue] = []
        self.updates: set[LoweredValue] = set()
        order = self.value("order", (), (Extent(1, rows=True),), "int")
        for given in program.inputs:
            shape = tuple(map(Extent.of, given.shape))
            kind: Type = "int" if given.kind in ("index", "class") else "float"
            source = self.value("source", (), shape, kind, given.name)
            self.names[given.name] = self.value("take", (source, order), shape, kind)
        for name, sizes in program.shapes.items():
            self.names[name] = self.value("load", (), tuple(map(Extent, sizes)), "float", name)
        for name in program.scalars:
            self.names[name] = self.value("scalar", (), (), "int" if name == "seed" else "weak", name)

    def lower_line(self, line: ProgramLine) -> None:
        self.line, before = line, len(self.values)
        try:
            result = self.as_value(self.expression(line.tree))
            if line.operator != "=":
                result = self.assign(line, result)
        except NO_MATHEMATICS as error:
            raise UnsupportedLineError(line, str(error) or type(error).__name__) from error
        self.names[line.target] = result
        if line.phase == "update":
            self.updates.update(self.values[before:])

    def assign(self, line: ProgramLine, change: LoweredValue) -> LoweredValue:
        """Return the next meaning of an array that a line changes in place."""
        old = self.names[line.target]
        kind = {"+=": "add", "-=": "subtract", "*=": "multiply", "/=": "divide"}[line.operator]
        new = self.elementwise(kind, old, change)
        if new.shape != old.shape:
            raise NotImplementedError("the change has another shape than the array")
        new = replace(new, target=old.target or (old.attribute if old.operation == "load" else ""))
        if not new.target:
            raise NotImplementedError("a change of something that is no parameter, state or slot")
        self.assigned.append(new)
        self.values.append(new)
        return new

    # expressions

    def expression(self, node: ast.expr) -> Any:
        """Return the value, number or size that a piece of a line's syntax tree is."""
        method = getattr(self, f"lower_{type(node).__name__}", None)
        if method is None:
            raise NotImplementedError(f"`{ast.unparse(node)}` is no expression that is compiled")
        return method(node)

    def lower_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def lower_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.expression(element) for element in node.elts)

    def lower_Name(self, node: ast.Name) -> Any:
        return Extent(1, rows=True) if node.id == "n" else self.names[node.id]

    def lower_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            return -operand if isinstance(operand, int | float) else self.elementwise("negative", operand)
        if isinstance(node.op, ast.Invert):
            return self.elementwise("logical_not", operand)
        raise NotImplementedError(f"the operator of `{ast.unparse(node)}` is not compiled")

    def lower_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        if isinstance(node.op, ast.MatMult):
            return self.product(self.as_value(left), self.as_value(right))
        if type(node.op) in LOGIC:
            return self.elementwise(LOGIC[type(node.op)], left, right)
        if type(node.op) not in ARITHMETIC:
            raise NotImplementedError(f"the operator of `{ast.unparse(node)}` is not compiled")
        name, compute = ARITHMETIC[type(node.op)]
        if isinstance(left, int | float) and isinstance(right, int | float):
            return compute(left, right)
        return self.elementwise(name, left, right)

    def lower_Compare(self, node: ast.Compare) -> LoweredValue:
        if len(node.ops) != 1:
            raise NotImplementedError("a chain of comparisons")
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        return self.elementwise(COMPARISONS[type(node.ops[0])], left, right)

    def lower_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "np":
            return {"pi": math.pi, "e": math.e, "newaxis": None, "inf": math.inf}[node.attr]
        array = self.as_value(self.expression(node.value))
        match node.attr:
            case "T":
                return self.transpose(array)
            case "shape":
                return array.shape
            case "size":
                return array.size
            case "ndim":
                return len(array.shape)
            case "dtype":
                return array.type
        raise NotImplementedError(f".{node.attr}")

    def lower_Subscript(self, node: ast.Subscript) -> Any:
        thing = self.expression(node.value)
        if isinstance(thing, tuple):
            return thing[ast.literal_eval(node.slice)]
        index = self.expression(node.slice)
        if isinstance(index, LoweredValue):
            return self.take(thing, index)
        if index == (..., None):
            return self.reshape(thing, (*thing.shape, ONE))
        if index == (..., 0):  # only what does not look at the values themselves may read the first of them
            return self.value("first", (thing,), thing.shape[:-1], thing.type)
        raise NotImplementedError(f"the index of `{ast.unparse(node)}`")

    def lower_Call(self, node: ast.Call) -> Any:
        keywords = {word.arg: self.expression(word.value) for word in node.keywords if word.arg}
        arguments = [self.expression(argument) for argument in node.args]
        function = node.func
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name) and function.value.id == "np":
                return self.numpy(function.attr, arguments, keywords)
            array = self.as_value(self.expression(function.value))
            return self.method(function.attr, array, arguments, keywords)
        if isinstance(function, ast.Name) and hasattr(self, f"primitive_{function.id}"):
            return getattr(self, f"primitive_{function.id}")(*arguments, **keywords)
        raise NotImplementedError(f"`{ast.unparse(function)}` is no function that is compiled")
