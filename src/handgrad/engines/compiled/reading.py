"""Reading a program's lines into values: what stands where in a line.

What cannot be followed raises `UnsupportedLineError` with the line and the reason.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from handgrad.engines.compiled.operations import Operations
from handgrad.engines.compiled.values import ONE, Size, Type, Value
from handgrad.engines.engine import UnsupportedLineError
from handgrad.program import Program, ProgramLine

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

UNREADABLE = (
    NotImplementedError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError
)  # fmt: skip
"""What reading an expression raises that is no such mathematics."""


class Reader(Operations):
    """Reads the lines of one program, in order.

    Attributes
    ----------
    names
        The value each name of the program stands for, after the lines read so far.
    updates
        Those that only the lines of the update need.
    assigned
        The values that overwrite kept arrays, in order.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.names: dict[str, Value] = {}
        self.assigned: list[Value] = []
        self.updates: set[Value] = set()
        self.order = self.value("order", (), (Size(1, rows=True),), "int")
        for given in program.inputs:
            shape = tuple(Size.of(size) for size in given.shape)
            kind: Type = "int" if given.kind in ("index", "class") else "float"
            source = self.value("source", (), shape, kind, given.name)
            self.names[given.name] = self.value("take", (source, self.order), shape, kind)
        shapes = {name: kept.shape for name, kept in {**program.parameters, **program.states}.items()}
        for name, sizes in {**shapes, **program.slots}.items():
            self.names[name] = self.value("load", (), tuple(map(Size, sizes)), "float", name)
        for name in program.scalars:
            self.names[name] = self.value("scalar", (), (), "int" if name == "seed" else "weak", name)

    def read(self) -> None:
        """Read every line."""
        for line in self.program.lines:
            before = len(self.values)
            self.read_line(line)
            if line.phase == "update":
                self.updates.update(self.values[before:])

    def read_line(self, line: ProgramLine) -> None:
        self.line = line
        try:
            result = self.as_value(self.expression(ast.parse(line.expression, mode="eval").body))
            if line.operator != "=":
                result = self.assign(line, result)
        except UNREADABLE as error:
            raise UnsupportedLineError(line, str(error) or type(error).__name__) from error
        self.names[line.target] = result

    def assign(self, line: ProgramLine, change: Value) -> Value:
        """Return the next meaning of an array that a line changes in place."""
        old = self.names[line.target]
        kind = {"+=": "add", "-=": "subtract", "*=": "multiply", "/=": "divide"}[line.operator]
        new = self.elementwise(kind, old, change)
        if new.shape != old.shape:
            raise NotImplementedError("the change has another shape than the array")
        new = replace(new, target=old.target or (old.attribute if old.operation == "load" else ""))
        if not new.target:
            raise NotImplementedError("a change of something that is not kept")
        self.assigned.append(new)
        self.values.append(new)
        return new

    # expressions

    def expression(self, node: ast.expr) -> Any:
        """Return what a piece of a line's syntax tree stands for."""
        method = getattr(self, f"read_{type(node).__name__}", None)
        if method is None:
            raise NotImplementedError(f"`{ast.unparse(node)}` is no expression that is compiled")
        return method(node)

    def read_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def read_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self.expression(element) for element in node.elts)

    def read_Name(self, node: ast.Name) -> Any:
        return Size(1, rows=True) if node.id == "n" else self.names[node.id]

    def read_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            return -operand if isinstance(operand, int | float) else self.elementwise("negative", operand)
        if isinstance(node.op, ast.Invert):
            return self.elementwise("logical_not", operand)
        raise NotImplementedError(f"the operator of `{ast.unparse(node)}` is not compiled")

    def read_BinOp(self, node: ast.BinOp) -> Any:
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

    def read_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise NotImplementedError("a chain of comparisons")
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        return self.elementwise(COMPARISONS[type(node.ops[0])], left, right)

    def read_Attribute(self, node: ast.Attribute) -> Any:
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

    def read_Subscript(self, node: ast.Subscript) -> Any:
        thing = self.expression(node.value)
        if isinstance(thing, tuple):
            return thing[ast.literal_eval(node.slice)]
        index = self.expression(node.slice)
        if isinstance(index, Value):
            return self.take(thing, index)
        if index == (..., None):
            return self.reshape(thing, (*thing.shape, ONE))
        if index == (..., 0):  # only what does not look at the values themselves may read the first of them
            return self.value("first", (thing,), thing.shape[:-1], thing.type)
        raise NotImplementedError(f"the index of `{ast.unparse(node)}`")

    def read_Call(self, node: ast.Call) -> Any:
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
