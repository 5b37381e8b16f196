"""Lowering a program: each line's syntax tree to operations on values."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.program.functions import fixed, whole
from handgrad.program.lowered import GIVEN, Extent, Lowered, LoweredValue, Type, UnsupportedLineError
from handgrad.program.program import Program, ProgramLine
from handgrad.program.time_loops import TimeLoops
from handgrad.rules.rule_source import blocks

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
    ast.FloorDiv: "floor_divide", ast.BitAnd: "logical_and", ast.BitOr: "logical_or",
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "not_equal", ast.USub: "negative", ast.Invert: "logical_not",
}  # fmt: skip
"""Python's operators, by the operation that each is."""

CHANGES = {"+=": "add", "-=": "subtract", "*=": "multiply", "/=": "divide"}

NO_MATHEMATICS = (
    NotImplementedError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError
)  # fmt: skip
"""What lowering an expression raises that is no such mathematics."""


def lower(program: Program, *, by_line: bool = False) -> Lowered:
    """Lower a program; raises `UnsupportedLineError` at the first line that cannot be.

    With ``by_line``, each line has a value of its own, computed from those of the names that it reads and from nothing else:
    whatever a name becomes, the lines that read it follow. Otherwise lines share what they compute, and what one is known to
    be is read past its name, which is faster.
    """
    lowering = (LoweringByLine if by_line else Lowering)(program)
    again = ""
    for block in blocks(program.lines):
        if block[0].again != again:
            again = block[0].again
            lowering.forget({line.target for line in program.lines if line.again == again != ""})
        lowering.lower_block(block)
    return Lowered(
        tuple(lowering.values), lowering.names, frozenset(lowering.updates), tuple(lowering.assigned),
        tuple(lowering.loops),
    )  # fmt: skip


class Lowering(TimeLoops):
    """The values of the names after the lines lowered so far, and those that update lines make."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.dtype)
        self.names: dict[str, LoweredValue] = {}
        self.fixed: dict[str, Any] = {}  # what names are that follow from options and sizes alone
        self.assigned: list[LoweredValue] = []
        self.updates: set[LoweredValue] = set()
        order = self.value("order", (), (Extent(1, rows=True),), "int")
        for given in program.inputs:
            shape = tuple(map(Extent.of, given.shape))
            kind: Type = "int" if given.whole else "float"
            source = self.value("source", (), shape, kind, given.name)
            self.names[given.name] = self.value("take", (source, order), shape, kind)
        for name, sizes in program.shapes.items():
            self.names[name] = self.value("load", (), tuple(map(Extent, sizes)), "float", name)
        for name in program.scalars:
            self.names[name] = self.value("scalar", (), (), "int" if name == "seed" else "weak", name)

    def forget(self, names: set[str]) -> None:
        """Compute again what the lines that make these names have computed."""
        self.known = {
            key: value
            for key, value in self.known.items()
            if value.line is None or value.line.target not in names or value.operation in GIVEN
        }

    def lower_block(self, block: list[ProgramLine]) -> None:
        self.line = block[0]
        try:
            if block[0].loop:
                self.lower_loop(block)
            else:
                self.lower_line(block[0])
        except NO_MATHEMATICS as error:
            raise UnsupportedLineError(self.line, str(error) or type(error).__name__) from error

    def lower_line(self, line: ProgramLine) -> None:
        before, found = len(self.values), self.expression(line.tree)
        if line.operator == "=" and (known := fixed(found)) is not None:
            self.fixed[line.target] = known
        result = self.as_value(found)
        if line.operator != "=":
            result = self.assign(line, result)
        self.names[line.target] = result
        if line.phase in ("accumulate", "update"):
            self.updates.update(self.values[before:])

    def arithmetic(self, operation: str, left: ast.expr, right: ast.expr) -> Any:
        return self.apply(operation, self.expression(left), self.expression(right))

    def assign(self, line: ProgramLine, change: LoweredValue) -> LoweredValue:
        """Return the next meaning of an array that a line changes in place."""
        old = self.names[line.target]
        new = self.elementwise(CHANGES[line.operator], old, change)
        if new.shape != old.shape:
            raise NotImplementedError("the change has another shape than the array")
        new = replace(new, target=old.target or (old.attribute if old.operation == "load" else ""))
        if not new.target:
            raise NotImplementedError("a change of something that is no parameter, state or slot")
        self.assigned.append(new)
        self.values.append(new)
        return new

    def expression(self, node: ast.expr) -> Any:
        """Return the value, number, size or array of numbers that a piece of a line's syntax tree is."""
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Tuple(elts=elements):
                return tuple(self.expressions(elements))
            case ast.List(elts=elements):
                return self.expressions(elements)
            case ast.Name(id=name):
                if name == "n" and name not in self.names:
                    return Extent(1, rows=True)
                return self.fixed[name] if name in self.fixed else self.names[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                operand = self.expression(inner)
                return -operand if isinstance(operand, int | float) else self.apply("negative", operand)
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                return self.apply("logical_not", self.expression(inner))
            case ast.BinOp(op=ast.MatMult()):
                operands = map(self.expression, (node.left, node.right))
                return self.product(*map(self.as_value, operands))
            case ast.BinOp(op=sign, left=left, right=right) if type(sign) in OPERATORS:
                return self.arithmetic(OPERATORS[type(sign)], left, right)
            case ast.Compare(ops=[sign], left=left, comparators=[right]):
                return self.apply(OPERATORS[type(sign)], self.expression(left), self.expression(right))
            case ast.Attribute(value=ast.Name(id="np"), attr=name):
                return {"pi": math.pi, "e": math.e, "newaxis": None, "inf": math.inf}[name]
            case ast.Attribute(value=inner, attr=name):
                return self.attribute(self.as_value(self.expression(inner)), name)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(part and whole(self.expression(part)) for part in (lower, upper, step)))
            case ast.Call():
                return self.call(node)
        raise NotImplementedError(f"`{ast.unparse(node)}` is no expression that is compiled")

    def expressions(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.expression(node.value)
            else:
                found.append(self.expression(node))
        return found

    def attribute(self, array: LoweredValue, name: str) -> Any:
        match name:
            case "T":
                return self.transpose(array, tuple(range(len(array.shape)))[::-1])
            case "mT":
                return self.swapped(array, -1, -2)
            case "shape":
                return array.shape
            case "size":
                return array.size
            case "ndim":
                return len(array.shape)
            case "dtype":
                return array.type
        raise NotImplementedError(f".{name}")

    def subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.filling:
            return self.read_filled(node.value.id, self.index(node.slice))
        thing, index = self.expression(node.value), self.expression(node.slice)
        if isinstance(thing, tuple | np.ndarray):
            return thing[index]
        if isinstance(index, LoweredValue):
            return self.take(thing, index)
        return self.indexed(thing, index if isinstance(index, tuple) else (index,))

    def call(self, node: ast.Call) -> Any:
        keywords = {word.arg: self.expression(word.value) for word in node.keywords if word.arg}
        arguments = self.expressions(node.args)
        match node.func:
            case ast.Attribute(value=ast.Name(id="np"), attr=name):
                return self.numpy(name, arguments, keywords)
            case ast.Attribute(value=inner, attr=name):
                return self.method(name, self.as_value(self.expression(inner)), arguments, keywords)
            case ast.Name(id=name) if hasattr(self, f"primitive_{name}"):
                return getattr(self, f"primitive_{name}")(*arguments, **keywords)
        raise NotImplementedError(f"`{ast.unparse(node.func)}` is no function that is compiled")


class LoweringByLine(Lowering):
    """Lowers each line to operations of its own, on the values of the names that it reads."""

    def lower_line(self, line: ProgramLine) -> None:
        self.known = {key: value for key, value in self.known.items() if value.operation in NAMED}
        before = len(self.values)
        super().lower_line(line)
        value = self.names[line.target]
        own = value in self.values[before:] and value.operation != "broadcast" and value.base is value
        if (
            line.operator == "=" and not own
        ):  # what another name is, or known to be one number, or other numbers' view
            self.names[line.target] = self.copy(value)
        if isinstance(self.fixed.get(line.target), float):
            del self.fixed[line.target]  # a number is read by its name; a size may be a shape as well

    def arithmetic(self, operation: str, left: ast.expr, right: ast.expr) -> Any:
        """Read sizes by their names too, where a number and no size comes out."""
        found = [self.expression(node) for node in (left, right)]
        if operation == "divide" or any(isinstance(each, LoweredValue) for each in found):
            found = [
                self.names.get(node.id, each) if isinstance(node, ast.Name) else each
                for node, each in zip((left, right), found, strict=True)
            ]
        return self.apply(operation, *found)


NAMED = frozenset({"load", "scalar", "source", "order", "take"})
"""What names have before the first line."""
