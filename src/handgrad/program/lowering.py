"""Lowering a program: each line's syntax tree to operations on values."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from handgrad.program.lowered import (
    ONE,
    REDUCTIONS,
    Extent,
    Extents,
    Lowered,
    LoweredValue,
    Type,
    UnsupportedLineError,
    broadcast,
    product,
)
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

TRUTH_VALUES = frozenset({*COMPARISONS.values(), *LOGIC.values(), "logical_not"})
"""Operations that give truth values."""

SAME_NAME = TRUTH_VALUES | {
    "maximum", "minimum", "absolute", "exp", "log", "log1p", "expm1", "tanh", "sqrt", "sign", "sin", "cos", "tan",
    "sinh", "cosh", "arctan", "arcsin", "arccos", "floor", "ceil", "power", "add", "subtract", "multiply", "divide",
    "negative",
}  # fmt: skip
"""NumPy's elementwise functions that are operations of the same name."""

OTHER_NAMES = {"abs": "absolute", "true_divide": "divide", "fabs": "absolute", "amax": "max", "amin": "min"}

MAX_POWER = 8
"""Powers up to this are written out as products; beyond, one pow is as fast."""

NO_MATHEMATICS = (
    NotImplementedError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError
)  # fmt: skip
"""What lowering an expression raises that is no such mathematics."""


def lower(program: Program) -> Lowered:
    """Lower a program; raises `UnsupportedLineError` at the first line that cannot be."""
    lowering = Lowering(program)
    for line in program.lines:
        lowering.lower_line(line)
    return Lowered(
        tuple(lowering.values), lowering.names, frozenset(lowering.updates), tuple(lowering.assigned)
    )


class Lowering:
    """The values of the names after the lines lowered so far, and those that update lines make."""

    def __init__(self, program: Program) -> None:
        self.dtype = program.dtype
        self.line: ProgramLine | None = None
        self.known: dict[tuple[Any, ...], LoweredValue] = {}
        self.values: list[LoweredValue] = []
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

    # values

    def value(
        self,
        operation: str,
        inputs: Iterable[LoweredValue],
        shape: Extents,
        kind: Type,
        attribute: Any = None,
    ) -> LoweredValue:
        """Return the value of an operation: the same one every time."""
        exact = attribute.hex() if isinstance(attribute, float) else attribute  # 0.0 and -0.0 are two numbers
        key = (operation, tuple(inputs), shape, kind, exact)
        if key not in self.known:
            self.known[key] = LoweredValue(operation, tuple(inputs), shape, kind, attribute, self.line)
            self.values.append(self.known[key])
        return self.known[key]

    def as_value(self, thing: Any) -> LoweredValue:
        """Return what an expression gave as a value: numbers and sizes are values too."""
        if isinstance(thing, LoweredValue):
            return thing
        if isinstance(thing, Extent):
            return self.value("size", (), (), "weak", thing) if thing.rows else self.as_value(thing.factor)
        if isinstance(thing, int | float):
            return self.value("constant", (), (), "weak", float(thing))
        raise NotImplementedError(f"{thing!r} is no array or number")

    # lines and expressions

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

    def expression(self, node: ast.expr) -> Any:
        """Return the value, number or size that a piece of a line's syntax tree is."""
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Tuple(elts=elements):
                return tuple(map(self.expression, elements))
            case ast.Name(id=name):
                return Extent(1, rows=True) if name == "n" else self.names[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                operand = self.expression(inner)
                return -operand if isinstance(operand, int | float) else self.elementwise("negative", operand)
            case ast.UnaryOp(op=ast.Invert(), operand=inner):
                return self.elementwise("logical_not", self.expression(inner))
            case ast.BinOp():
                return self.binary(node)
            case ast.Compare(ops=[comparison], left=left, comparators=[right]):
                operands = self.expression(left), self.expression(right)
                return self.elementwise(COMPARISONS[type(comparison)], *operands)
            case ast.Attribute(value=ast.Name(id="np"), attr=name):
                return {"pi": math.pi, "e": math.e, "newaxis": None, "inf": math.inf}[name]
            case ast.Attribute(value=inner, attr=name):
                return self.attribute(self.as_value(self.expression(inner)), name)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                return self.call(node)
        raise NotImplementedError(f"`{ast.unparse(node)}` is no expression that is compiled")

    def binary(self, node: ast.BinOp) -> Any:
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

    def attribute(self, array: LoweredValue, name: str) -> Any:
        match name:
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
        raise NotImplementedError(f".{name}")

    def subscript(self, node: ast.Subscript) -> Any:
        thing = self.expression(node.value)
        if isinstance(thing, tuple):
            return thing[_place(node.slice)]
        index = self.expression(node.slice)
        if isinstance(index, LoweredValue):
            return self.take(thing, index)
        if index == (..., None):
            return self.reshape(thing, (*thing.shape, ONE))
        if index == (..., 0):  # only what does not look at the values themselves may read the first of them
            return self.value("first", (thing,), thing.shape[:-1], thing.type)
        raise NotImplementedError(f"the index of `{ast.unparse(node)}`")

    def call(self, node: ast.Call) -> Any:
        keywords = {word.arg: self.expression(word.value) for word in node.keywords if word.arg}
        arguments = [self.expression(argument) for argument in node.args]
        match node.func:
            case ast.Attribute(value=ast.Name(id="np"), attr=name):
                return self.numpy(name, arguments, keywords)
            case ast.Attribute(value=inner, attr=name):
                return self.method(name, self.as_value(self.expression(inner)), arguments, keywords)
            case ast.Name(id=name) if hasattr(self, f"primitive_{name}"):
                return getattr(self, f"primitive_{name}")(*arguments, **keywords)
        raise NotImplementedError(f"`{ast.unparse(node.func)}` is no function that is compiled")

    # functions of NumPy, methods

    def numpy(self, name: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        name = OTHER_NAMES.get(name, name)
        if name in REDUCTIONS or name == "mean":
            return self.reduce(name, *arguments, **keywords)
        if name in SAME_NAME and not keywords:
            return self.elementwise(name, *arguments)
        match name, arguments:
            case _ if keywords:
                pass
            case "where", [_, _, _]:
                return self.elementwise("where", *arguments)
            case "clip", [x, low, high]:
                return self.elementwise("minimum", self.elementwise("maximum", x, low), high)
            case "square", [x]:
                return self.elementwise("multiply", x, x)
            case "reciprocal", [x]:
                return self.elementwise("divide", 1, x)
            case "full_like", [like, number]:
                return self.broadcast(self.as_value(number), like.shape, like.type)
            case (("zeros_like" | "ones_like"), [like]):
                return self.broadcast(self.as_value(float(name == "ones_like")), like.shape, like.type)
            case "expand_dims", [x, -1]:
                return self.reshape(x, (*x.shape, ONE))
            case "shape", [x]:
                return self.as_value(x).shape
            case (("matmul" | "dot"), [left, right]):
                return self.product(self.as_value(left), self.as_value(right))
            case "transpose", [x]:
                return self.transpose(x)
        raise NotImplementedError(f"np.{name} with these arguments is not compiled")

    def method(
        self, name: str, array: LoweredValue, arguments: list[Any], keywords: Mapping[str, Any]
    ) -> Any:
        if name in REDUCTIONS or name == "mean":
            return self.reduce(name, array, *arguments, **keywords)
        match name, arguments:
            case "reshape", [tuple() as shape]:
                return self.reshape(array, shape)
            case "reshape", _:
                return self.reshape(array, tuple(arguments))
            case "astype", [kind] if kind == array.type:
                return array
            case "astype", ["float"]:
                return self.value("convert", (array,), array.shape, "float")
        raise NotImplementedError(f".{name} with these arguments is not compiled")

    # operations

    def elementwise(self, operation: str, *operands: Any) -> LoweredValue:
        values = tuple(self.in_place(self.as_value(operand)) for operand in operands)
        if operation == "power":
            return self.power(*values)
        shape = broadcast(*(value.shape for value in values))
        kind: Type = "bool" if operation in TRUTH_VALUES else _promote(operation, values)
        if operation == "where" and values[0].type != "bool":
            raise NotImplementedError("a condition that is no comparison")
        types = {value.type for value in values}
        if operation.startswith("logical") and types != {"bool"}:
            raise NotImplementedError("logic of other things than comparisons")
        if operation == "floor_divide" and types != {"weak"}:
            raise NotImplementedError("// of arrays")
        if "int" in types and any(v.operation == "constant" and v.attribute % 1 for v in values):
            raise NotImplementedError("whole numbers beside a fraction")
        return self.value(operation, values, shape, kind)

    def in_place(self, value: LoweredValue) -> LoweredValue:
        """Return a value that a loop can read from memory."""
        if value.operation == "transpose":
            raise NotImplementedError("a transposed array outside a product of matrices")
        return value

    def power(self, base: LoweredValue, exponent: LoweredValue) -> LoweredValue:
        """Write powers by small whole numbers out as products."""
        number = exponent.attribute if exponent.operation == "constant" else None
        if number == 0.5:
            return self.elementwise("sqrt", base)
        if number is not None and number == int(number) and 1 <= abs(number) <= MAX_POWER:
            result = base
            for _ in range(int(abs(number)) - 1):
                result = self.elementwise("multiply", result, base)
            return result if number > 0 else self.elementwise("divide", 1, result)
        shape = broadcast(base.shape, exponent.shape)
        return self.value("power", (base, exponent), shape, _promote("power", (base, exponent)))

    def broadcast(self, value: LoweredValue, shape: Extents, kind: Type) -> LoweredValue:
        if value.shape != ():
            raise NotImplementedError("an array filled with more than one number")
        if kind != "float":
            raise NotImplementedError("a filled array of other numbers than the program's")
        return self.value("broadcast", (value,), shape, kind)

    def reduce(
        self, kind: str, array: LoweredValue, axis: Any = None, keepdims: bool = False
    ) -> LoweredValue:
        """Sum, average, or find the largest or smallest along axes."""
        self.in_place(array)
        axes = range(len(array.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        along = tuple(sorted(a % len(array.shape) for a in axes)) if array.shape else ()
        shape = tuple(
            ONE if place in along else size
            for place, size in enumerate(array.shape)
            if keepdims or place not in along
        )
        if not along:
            return array
        if array.type == "bool":
            raise NotImplementedError("a reduction of truth values")
        if array.type in ("int", "single"):
            raise NotImplementedError("a reduction of other numbers than the program's")
        if array.type == "weak":
            array = self.value("convert", (array,), array.shape, "float")
        if array.base.operation == "broadcast":  # one number everywhere
            (number,) = array.base.inputs
            if kind == "sum":
                number = self.elementwise("multiply", number, product(tuple(array.shape[a] for a in along)))
            return self.broadcast(number, shape, array.type) if shape else number
        if kind == "mean":
            total = self.value("sum", (array,), shape, array.type, along)
            return self.elementwise("divide", total, product(tuple(array.shape[a] for a in along)))
        return self.value(kind, (array,), shape, array.type, along)

    def reshape(self, array: LoweredValue, given: tuple[Any, ...]) -> LoweredValue:
        """See the same memory in another shape; one size may be -1."""
        sizes = [size if isinstance(size, Extent) else Extent(size) for size in given]
        total = array.size
        if Extent(-1) in sizes:
            place = sizes.index(Extent(-1))
            rest = product(tuple(size for size in sizes if size != Extent(-1)))
            if total.factor % rest.factor or (rest.rows and not total.rows):
                raise NotImplementedError("sizes that do not divide")
            sizes[place] = Extent(total.factor // rest.factor, total.rows and not rest.rows)
        shape = tuple(sizes)
        if product(shape) != total:
            raise NotImplementedError("a shape of another size")
        if shape == array.shape:
            return array
        if array.operation == "transpose":
            raise NotImplementedError("a transposed array in another shape")
        if array.base.target or array.base.operation == "load":
            raise NotImplementedError(
                "a parameter, state or slot in another shape"
            )  # it would change with the array
        return self.value("reshape", (array.base,), shape, array.type)

    def transpose(self, array: LoweredValue) -> LoweredValue:
        if len(array.shape) < 2:
            return array
        if len(array.shape) > 2:
            raise NotImplementedError("the transpose of more than two axes")
        if array.operation == "transpose":
            return array.inputs[0]
        return self.value("transpose", (array,), array.shape[::-1], array.type)

    def product(self, left: LoweredValue, right: LoweredValue) -> LoweredValue:
        """Multiply matrices; a left operand of more axes is a matrix of rows."""
        if not 1 <= len(right.shape) <= 2 or len(left.shape) < 2:
            raise NotImplementedError(f"a product of {len(left.shape)} and {len(right.shape)} axes")
        if left.shape[-1] != right.shape[0]:
            raise NotImplementedError(f"a product over {left.shape[-1]} and {right.shape[0]}")
        if left.type != "float" or right.type != "float":
            raise NotImplementedError("a product of other numbers than the program's")
        return self.value("product", (left, right), (*left.shape[:-1], *right.shape[1:]), "float")

    def take(self, table: LoweredValue, index: LoweredValue) -> LoweredValue:
        if index.type != "int" or len(table.shape) != 2 or table.operation != "load":
            raise NotImplementedError("indexing other than rows of a parameter by whole numbers")
        return self.value("take", (table, index), (*index.shape, table.shape[1]), table.type)

    # handgrad's primitives

    def primitive_rows(self, v: LoweredValue) -> LoweredValue:
        return self.reshape(v, (Extent(-1), v.shape[-1]))

    def primitive_one_hot(self, t: LoweredValue, like: LoweredValue) -> LoweredValue:
        if t.type != "int":
            raise NotImplementedError("classes that are no whole numbers")
        label = self.reshape(t, (*t.shape, ONE))
        return self.value("is_class", (label,), (*t.shape, like.shape[-1]), like.type)

    def primitive_add_rows_at(self, i: LoweredValue, v: LoweredValue, like: LoweredValue) -> LoweredValue:
        fits = v.shape == (*i.shape, like.shape[-1]) and len(like.shape) == 2 and not like.shape[0].rows
        plain = i.type == "int" and v.type == "float" and v.operation not in ("broadcast", "transpose")
        if not (fits and plain):
            raise NotImplementedError("add_rows_at of other things than rows, one for each index")
        return self.value("add_rows_at", (v, i), like.shape, "float")

    def primitive_uniform(self, shape: tuple[Any, ...], key: tuple[Any, ...]) -> LoweredValue:
        sizes = tuple(size if isinstance(size, Extent) else Extent(size) for size in shape)
        kind: Type = "float" if self.dtype == "float32" else "single"
        return self.value("uniform", tuple(map(self.as_value, key)), sizes, kind)

    def primitive_normal_cdf(self, v: LoweredValue) -> LoweredValue:
        return self.elementwise("normal_cdf", v)


def _place(index: ast.expr) -> int | slice:
    """Return a number, or a slice of numbers, as in ``x.shape[-3:-1]``."""
    if not isinstance(index, ast.Slice):
        return int(ast.literal_eval(index))
    return slice(*(part and ast.literal_eval(part) for part in (index.lower, index.upper, index.step)))


def _promote(operation: str, values: tuple[LoweredValue, ...]) -> Type:
    """Return the type of an arithmetic result, as NumPy 2 has it."""
    types = {value.type for value in (values[1:] if operation == "where" else values)}
    for kind in ("float", "single", "int"):
        if kind in types:
            if kind == "int" and (operation in ("divide", "exp", "sqrt") or "weak" in types):
                raise NotImplementedError("arithmetic of whole numbers that gives others")
            return kind
    if types == {"bool"} and operation != "where":
        raise NotImplementedError("arithmetic of truth values alone")
    return "bool" if types == {"bool"} else "weak"
