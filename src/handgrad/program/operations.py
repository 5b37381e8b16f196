"""NumPy's functions as values: what each gives, with shapes and types followed through, and what is not compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handgrad.program.lowered import ONE, REDUCTIONS, Extent, Extents, LoweredValue, Type, product
from handgrad.program.program import Program, ProgramLine

SAME_NAME = frozenset({
    "maximum", "minimum", "absolute", "exp", "log", "log1p", "expm1", "tanh", "sqrt", "sign", "sin", "cos", "tan",
    "sinh", "cosh", "arctan", "arcsin", "arccos", "floor", "ceil", "power", "add", "subtract", "multiply", "divide",
    "logical_and", "logical_or", "logical_not", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
})  # fmt: skip
"""NumPy's elementwise functions that are operations of the same name."""

OTHER_NAMES = {"abs": "absolute", "true_divide": "divide", "fabs": "absolute"}

LOGICAL = frozenset({
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
})  # fmt: skip
"""Operations that give truth values."""


class Operations:
    """Makes the values of one program, in the order in which they are first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.line: ProgramLine | None = None
        self.known: dict[tuple[Any, ...], LoweredValue] = {}
        self.values: list[LoweredValue] = []

    def value(
        self,
        operation: str,
        inputs: tuple[LoweredValue, ...],
        shape: Extents,
        kind: Type,
        attribute: Any = None,
    ) -> LoweredValue:
        """Return the value of an operation: the same one when it has been asked for before."""
        exact = attribute.hex() if isinstance(attribute, float) else attribute  # 0.0 and -0.0 are two numbers
        key = (operation, inputs, shape, kind, exact)
        if key not in self.known:
            self.known[key] = LoweredValue(operation, inputs, shape, kind, attribute, self.line)
            self.values.append(self.known[key])
        return self.known[key]

    def constant(self, number: float) -> LoweredValue:
        return self.value("constant", (), (), "weak", float(number))

    def as_value(self, thing: Any) -> LoweredValue:
        """Return what an expression gave as a value: numbers and sizes are values too."""
        if isinstance(thing, LoweredValue):
            return thing
        if isinstance(thing, Extent):
            return self.value("size", (), (), "weak", thing) if thing.rows else self.constant(thing.factor)
        if isinstance(thing, int | float):
            return self.constant(thing)
        raise NotImplementedError(f"{thing!r} is no array or number")

    # functions

    def numpy(self, name: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """Apply a function of NumPy."""
        name = OTHER_NAMES.get(name, name)
        if name in SAME_NAME and not keywords:
            return self.elementwise(name, *arguments)
        if not arguments:
            raise NotImplementedError(f"np.{name} without arguments")
        first = arguments[0]
        match name:
            case "where" if len(arguments) == 3 and not keywords:
                return self.elementwise("where", *arguments)
            case "clip" if len(arguments) == 3 and not keywords:
                raised = self.elementwise("maximum", first, arguments[1])
                return self.elementwise("minimum", raised, arguments[2])
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

    def method(
        self, name: str, array: LoweredValue, arguments: list[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """Apply a method of an array."""
        if name in REDUCTIONS or name == "mean":
            return self.reduce(name, array, *arguments, **keywords)
        if name == "reshape":
            is_shape = len(arguments) == 1 and isinstance(arguments[0], tuple)
            return self.reshape(array, arguments[0] if is_shape else tuple(arguments))
        if name == "astype" and arguments == [array.type]:
            return array
        if name == "astype" and arguments == ["float"]:
            return self.value("convert", (array,), array.shape, "float")
        raise NotImplementedError(f".{name} with these arguments is not compiled")

    # operations

    def elementwise(self, operation: str, *operands: Any) -> LoweredValue:
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
        if number is not None and number == int(number) and 1 <= abs(number) <= 8:
            result = base
            for _ in range(int(abs(number)) - 1):
                result = self.elementwise("multiply", result, base)
            return result if number > 0 else self.elementwise("divide", 1, result)
        shape = _broadcast(base.shape, exponent.shape)
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
        kind: Type = "float" if self.program.dtype == "float32" else "single"
        return self.value("uniform", tuple(map(self.as_value, key)), sizes, kind)

    def primitive_normal_cdf(self, v: LoweredValue) -> LoweredValue:
        return self.elementwise("normal_cdf", v)


def _broadcast(*shapes: Extents) -> Extents:
    """Return the shape that several are broadcast to."""
    result: list[Extent] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {ONE}
        if len(sizes) > 1:
            raise NotImplementedError(f"sizes {' and '.join(sorted(map(str, sizes)))} in one place")
        result.append(sizes.pop() if sizes else ONE)
    return tuple(reversed(result))


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
