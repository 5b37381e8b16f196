"""Reading a program's lines into values: NumPy's expressions, with shapes and types followed through.

What cannot be followed raises `UnsupportedLineError` with the line and the reason.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from handgrad.engines.compiled.values import ONE, Shape, Size, Type, Value, product
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

SAME_NAME = frozenset({
    "maximum", "minimum", "absolute", "exp", "log", "log1p", "expm1", "tanh", "sqrt", "sign", "sin", "cos", "tan",
    "sinh", "cosh", "arctan", "arcsin", "arccos", "floor", "ceil", "power", "add", "subtract", "multiply", "divide",
    "logical_and", "logical_or", "logical_not", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
})  # fmt: skip
"""NumPy's elementwise functions that are operations of the same name."""

OTHER_NAMES = {"abs": "absolute", "true_divide": "divide", "fabs": "absolute"}

LOGICAL = frozenset({*COMPARISONS.values(), "logical_and", "logical_or", "logical_not"})

REDUCTIONS = frozenset({"sum", "mean", "max", "min"})

UNREADABLE = (
    NotImplementedError, KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError
)  # fmt: skip
"""What reading an expression raises that is no such mathematics."""


class Reader:
    """Reads the lines of one program, in order.

    Attributes
    ----------
    values
        Every value, in the order of the lines.
    names
        The value each name of the program stands for, after the lines read so far.
    updates
        Those that only the lines of the update need.
    assigned
        The values that overwrite kept arrays, in order.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.line: ProgramLine | None = None
        self.known: dict[tuple[Any, ...], Value] = {}
        self.values: list[Value] = []
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

    # values

    def value(
        self, operation: str, inputs: tuple[Value, ...], shape: Shape, kind: Type, attribute: Any = None
    ) -> Value:
        """Return the value of an operation: the same one when it has been asked for before."""
        exact = attribute.hex() if isinstance(attribute, float) else attribute  # 0.0 and -0.0 are two numbers
        key = (operation, inputs, shape, kind, exact)
        if key not in self.known:
            self.known[key] = Value(operation, inputs, shape, kind, attribute, self.line)
            self.values.append(self.known[key])
        return self.known[key]

    def constant(self, number: float) -> Value:
        return self.value("constant", (), (), "weak", float(number))

    def as_value(self, thing: Any) -> Value:
        """Return what an expression gave as a value: numbers and sizes are values too."""
        if isinstance(thing, Value):
            return thing
        if isinstance(thing, Size):
            return self.value("size", (), (), "weak", thing) if thing.rows else self.constant(thing.factor)
        if isinstance(thing, int | float):
            return self.constant(thing)
        raise NotImplementedError(f"{thing!r} is no array or number")

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

    def numpy(self, name: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """Apply a function of NumPy."""
        name = OTHER_NAMES.get(name, name)
        if name in SAME_NAME and not keywords:
            return self.elementwise(name, *arguments)
        if not arguments:
            raise NotImplementedError(f"np.{name} without arguments")
        first = arguments[0]
        match name:
            case "where" | "clip" if len(arguments) == 3 and not keywords:
                if name == "where":
                    return self.elementwise("where", *arguments)
                return self.elementwise(
                    "minimum", self.elementwise("maximum", first, arguments[1]), arguments[2]
                )
            case "square" if not keywords:
                return self.elementwise("multiply", first, first)
            case "negative" if not keywords:
                return self.elementwise("negative", first)
            case "reciprocal" if not keywords:
                return self.elementwise("divide", 1, first)
            case "full_like" if not keywords:
                return self.broadcast(self.as_value(arguments[1]), first.shape, first.type)
            case "zeros_like" | "ones_like" if not keywords:
                return self.broadcast(self.constant(name == "ones_like"), first.shape, first.type)
            case "expand_dims" if arguments[1:] == [-1]:
                return self.reshape(first, (*first.shape, ONE))
            case "shape":
                return self.as_value(first).shape
            case "sum" | "mean" | "max" | "min" | "amax" | "amin":
                return self.reduce(name.removeprefix("a"), first, *arguments[1:], **keywords)
            case "matmul" | "dot" if len(arguments) == 2 and not keywords:
                return self.product(*map(self.as_value, arguments))
            case "transpose" if len(arguments) == 1 and not keywords:
                return self.transpose(first)
        raise NotImplementedError(f"np.{name} with these arguments is not compiled")

    def method(self, name: str, array: Value, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """Apply a method of an array."""
        if name in REDUCTIONS:
            return self.reduce(name, array, *arguments, **keywords)
        if name == "reshape":
            given = (
                arguments[0] if len(arguments) == 1 and isinstance(arguments[0], tuple) else tuple(arguments)
            )
            return self.reshape(array, given)
        if name == "astype" and arguments == [array.type]:
            return array
        if name == "astype" and arguments == ["float"]:
            return self.value("convert", (array,), array.shape, "float")
        raise NotImplementedError(f".{name} with these arguments is not compiled")

    # operations

    def elementwise(self, operation: str, *operands: Any) -> Value:
        """Apply an operation at every place; sizes are broadcast as NumPy broadcasts them."""
        values = tuple(self.in_place(self.as_value(operand)) for operand in operands)
        if operation == "power":
            return self.power(*values)
        shape = _broadcast(*(value.shape for value in values))
        kind: Type = "bool" if operation in LOGICAL else _promote(operation, values)
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

    def in_place(self, value: Value) -> Value:
        """Return a value that a loop can read as it lies in memory."""
        if value.operation == "transpose":
            raise NotImplementedError("a transposed array outside a product of matrices")
        return value

    def power(self, base: Value, exponent: Value) -> Value:
        """Write powers by small whole numbers out as products."""
        number = exponent.attribute if exponent.operation == "constant" else None
        if number == 0.5:
            return self.elementwise("sqrt", base)
        if number is not None and number == int(number) and 1 <= abs(number) <= 8:
            result = base
            for _ in range(int(abs(number)) - 1):
                result = self.elementwise("multiply", result, base)
            return result if number > 0 else self.elementwise("divide", 1, result)
        shape = _broadcast(base.shape, exponent.shape)
        return self.value("power", (base, exponent), shape, _promote("power", (base, exponent)))

    def broadcast(self, value: Value, shape: Shape, kind: Type) -> Value:
        if value.shape != ():
            raise NotImplementedError("an array filled with more than one number")
        if kind != "float":
            raise NotImplementedError("a filled array of other numbers than the program's")
        return self.value("broadcast", (value,), shape, kind)

    def reduce(self, kind: str, array: Value, axis: Any = None, keepdims: bool = False) -> Value:
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

    def reshape(self, array: Value, given: tuple[Any, ...]) -> Value:
        """See the same memory in another shape; one size may be -1."""
        sizes = [size if isinstance(size, Size) else Size(size) for size in given]
        total = array.size
        if Size(-1) in sizes:
            place = sizes.index(Size(-1))
            rest = product(tuple(size for size in sizes if size != Size(-1)))
            if total.factor % rest.factor or (rest.rows and not total.rows):
                raise NotImplementedError("sizes that do not divide")
            sizes[place] = Size(total.factor // rest.factor, total.rows and not rest.rows)
        shape = tuple(sizes)
        if product(shape) != total:
            raise NotImplementedError("a shape of another size")
        if shape == array.shape:
            return array
        if array.operation == "transpose":
            raise NotImplementedError("a transposed array in another shape")
        if (array.base.target or array.base.operation == "load") and (
            self.program.slots or self.program.parameters
        ):
            raise NotImplementedError("a kept array in another shape")  # it would change with the array
        return self.value("reshape", (array.base,), shape, array.type)

    def transpose(self, array: Value) -> Value:
        if len(array.shape) < 2:
            return array
        if len(array.shape) > 2:
            raise NotImplementedError("the transpose of more than two axes")
        if array.operation == "transpose":
            return array.inputs[0]
        return self.value("transpose", (array,), array.shape[::-1], array.type)

    def product(self, left: Value, right: Value) -> Value:
        """Multiply matrices; a left operand of more axes is a matrix of rows."""
        if not 1 <= len(right.shape) <= 2 or len(left.shape) < 2:
            raise NotImplementedError(f"a product of {len(left.shape)} and {len(right.shape)} axes")
        if left.shape[-1] != right.shape[0]:
            raise NotImplementedError(f"a product over {left.shape[-1]} and {right.shape[0]}")
        if left.type != "float" or right.type != "float":
            raise NotImplementedError("a product of other numbers than the program's")
        return self.value("product", (left, right), (*left.shape[:-1], *right.shape[1:]), "float")

    def take(self, table: Value, index: Value) -> Value:
        if index.type != "int" or len(table.shape) != 2 or table.operation != "load":
            raise NotImplementedError("indexing other than rows of a kept table by whole numbers")
        return self.value("take", (table, index), (*index.shape, table.shape[1]), table.type)

    # handgrad's primitives

    def primitive_rows(self, v: Value) -> Value:
        return self.reshape(v, (Size(-1), v.shape[-1]))

    def primitive_one_hot(self, t: Value, like: Value) -> Value:
        if t.type != "int":
            raise NotImplementedError("classes that are no whole numbers")
        label = self.reshape(t, (*t.shape, ONE))
        return self.value("is_class", (label,), (*t.shape, like.shape[-1]), like.type)

    def primitive_add_rows_at(self, i: Value, v: Value, like: Value) -> Value:
        fits = v.shape == (*i.shape, like.shape[-1]) and len(like.shape) == 2 and not like.shape[0].rows
        plain = i.type == "int" and v.type == "float" and v.operation not in ("broadcast", "transpose")
        if not (fits and plain):
            raise NotImplementedError("add_rows_at of other things than rows, one for each index")
        return self.value("add_rows_at", (v, i), like.shape, "float")

    def primitive_uniform(self, shape: tuple[Any, ...], key: tuple[Any, ...]) -> Value:
        sizes = tuple(size if isinstance(size, Size) else Size(size) for size in shape)
        kind: Type = "float" if self.program.dtype == "float32" else "single"
        return self.value("uniform", tuple(map(self.as_value, key)), sizes, kind)

    def primitive_normal_cdf(self, v: Value) -> Value:
        return self.elementwise("normal_cdf", v)


def _broadcast(*shapes: Shape) -> Shape:
    """Return the shape that several are broadcast to."""
    result: list[Size] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {ONE}
        if len(sizes) > 1:
            raise NotImplementedError(f"sizes {' and '.join(sorted(map(str, sizes)))} in one place")
        result.append(sizes.pop() if sizes else ONE)
    return tuple(reversed(result))


def _promote(operation: str, values: tuple[Value, ...]) -> Type:
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
